//! A rewritten image that is ready to be served.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;
use futures::future::ready;
use futures::stream::{self, Stream, StreamExt as _};
use http::HeaderValue;
use ring::digest;

use super::Problem;
use crate::fetch::{FetchError, Fetcher, HttpSource};
use crate::iso::{EditedFile, Firmware, Parameters, Piece, Plan};

/// Which image is served, and what is written into it.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct IsoOrder {
    /// Where the user's image is.
    pub url: String,
    /// Its kernel parameters.
    pub parameters: Parameters,
}

/// One version of a user's image with parameters written into it.
#[derive(Debug)]
pub struct Image {
    source: Arc<HttpSource>,
    plan: Plan,
    etag: Option<HeaderValue>,
}

impl Image {
    pub(super) async fn make(fetcher: &Fetcher, order: &IsoOrder) -> Result<Self, Problem> {
        let source = Arc::new(fetcher.open(&order.url).await?);
        let plan = Plan::make(source.as_ref(), &order.parameters).await?;
        let etag = source.version().is_certain().then(|| etag(&source, &plan)).flatten();
        Ok(Self { source, plan, etag })
    }

    /// How many bytes it has.
    pub fn size(&self) -> u64 {
        self.plan.size()
    }

    /// Whether a server with this firmware will hand the parameters to its kernel.
    pub fn covers(&self, firmware: Firmware) -> bool {
        self.plan.covers(firmware)
    }

    /// What was edited.
    pub fn edited(&self) -> &[EditedFile] {
        self.plan.edited()
    }

    /// The same on every replica. `None` if the user's server sends no version: then two parts of one image cannot be promised to
    /// fit together.
    pub fn etag(&self) -> Option<&HeaderValue> {
        self.etag.as_ref()
    }

    /// Any range, as it comes. Pieces of the original are one request each.
    pub fn stream(
        self: Arc<Self>,
        range: Range<u64>,
    ) -> impl Stream<Item = Result<Bytes, FetchError>> + Send + 'static {
        let pieces = self.plan.pieces(range);
        let source = self.source.clone();
        stream::iter(pieces).flat_map(move |piece| match piece {
            Piece::Original(range) => source.clone().stream(range).left_stream(),
            Piece::Replaced(bytes) => stream::once(ready(Ok(bytes))).right_stream(),
        })
    }

    pub(super) fn weight(&self) -> usize {
        self.plan.weight()
    }

    /// Whether a replaced image would be noticed, because the user's server sends versions.
    pub(super) fn is_certain(&self) -> bool {
        self.source.version().is_certain()
    }
}

fn etag(source: &HttpSource, plan: &Plan) -> Option<HeaderValue> {
    let mut context = digest::Context::new(&digest::SHA256);
    let mut add = |bytes: &[u8]| {
        context.update(&(bytes.len() as u64).to_be_bytes());
        context.update(bytes);
    };
    add(&source.version().fingerprint());
    for piece in plan.pieces(0..plan.size()) {
        match piece {
            Piece::Original(range) => add(&[range.start.to_be_bytes(), range.end.to_be_bytes()].concat()),
            Piece::Replaced(bytes) => add(&bytes),
        }
    }
    HeaderValue::try_from(format!("\"{}\"", URL_SAFE_NO_PAD.encode(context.finish()))).ok()
}

/// Without the URL, whose query may be a signature.
impl fmt::Debug for IsoOrder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IsoOrder").field("parameters", &self.parameters).finish_non_exhaustive()
    }
}
