//! The table of clusters: following a chain, and making it longer.

use super::{Fat, Width};
use crate::iso::IsoError;
use crate::iso::bytes_at::{byte, le16, le32};
use crate::iso::canvas::Canvas;
use crate::iso::source::Source;

impl Fat {
    /// Follows a chain for at most that many clusters, so a loop costs no more than the size of the file.
    pub(super) async fn chain<S: Source>(
        &self,
        canvas: &mut Canvas<'_, S>,
        first: u32,
        clusters: u64,
    ) -> Result<Vec<u32>, IsoError> {
        let mut chain = Vec::new();
        let mut next = Some(first);
        while let Some(cluster) = next.filter(|_| (chain.len() as u64) < clusters) {
            chain.push(cluster);
            next = self.next(canvas, cluster).await?;
        }
        Ok(chain)
    }

    /// The cluster after this one.
    pub(super) async fn next<S: Source>(
        &self,
        canvas: &mut Canvas<'_, S>,
        cluster: u32,
    ) -> Result<Option<u32>, IsoError> {
        self.place(cluster)?;
        let next = self.entry(canvas, cluster).await?;
        Ok(if next >= self.last_mark() & !7 { None } else { Some(next) })
    }

    /// Adds free clusters to a chain, in every copy of the table.
    pub(super) async fn extend<S: Source>(
        &mut self,
        canvas: &mut Canvas<'_, S>,
        chain: &mut Vec<u32>,
        count: u64,
        path: &str,
    ) -> Result<(), IsoError> {
        let Some(mut last) = chain.last().copied() else {
            return Err(IsoError::malformed(format!("{path} in its EFI boot image has no cluster")));
        };
        for done in 0..count {
            let Some(free) = self.free_cluster(canvas).await? else {
                return Err(IsoError::NoRoom { path: path.to_owned(), missing: (count - done) * self.cluster });
            };
            self.set_entry(canvas, free, self.last_mark()).await?;
            self.set_entry(canvas, last, free).await?;
            self.next_free = free + 1;
            chain.push(free);
            last = free;
        }
        if count > 0 { self.tell_free(canvas, count, last).await } else { Ok(()) }
    }

    async fn free_cluster<S: Source>(&mut self, canvas: &mut Canvas<'_, S>) -> Result<Option<u32>, IsoError> {
        while self.next_free < self.end {
            if self.entry(canvas, self.next_free).await? == 0 {
                return Ok(Some(self.next_free));
            }
            self.next_free += 1;
        }
        Ok(None)
    }

    /// FAT32 stores how much is free, and where to look. A value that makes no sense is left as it is: drivers ignore it.
    async fn tell_free<S: Source>(&self, canvas: &mut Canvas<'_, S>, taken: u64, last: u32) -> Result<(), IsoError> {
        let Some(info) = self.info.map(|info| self.offset + info) else { return Ok(()) };
        let sector = canvas.read(info, 512).await?;
        let is_info = sector.starts_with(b"RRaA") && sector.get(484..488) == Some(b"rrAa");
        let free = le32(&sector, 488).checked_sub(u32::try_from(taken).unwrap_or(u32::MAX));
        match free.filter(|free| is_info && *free < self.end) {
            Some(free) => {
                canvas.write(info + 488, &free.to_le_bytes()).await?;
                canvas.write(info + 492, &last.to_le_bytes()).await
            }
            None => Ok(()),
        }
    }

    /// The highest number that ends a chain.
    fn last_mark(&self) -> u32 {
        match self.width {
            Width::Fat12 => 0x0fff,
            Width::Fat16 => 0xffff,
            Width::Fat32 => 0x0fff_ffff,
        }
    }

    async fn entry<S: Source>(&self, canvas: &mut Canvas<'_, S>, cluster: u32) -> Result<u32, IsoError> {
        let table = self.tables.get(self.active).copied().unwrap_or_default();
        let bytes = canvas.read(self.entry_place(table, cluster), self.entry_len()).await?;
        Ok(match self.width {
            Width::Fat12 if cluster % 2 == 1 => u32::from(le16(&bytes, 0) >> 4),
            Width::Fat12 => u32::from(le16(&bytes, 0) & 0x0fff),
            Width::Fat16 => u32::from(le16(&bytes, 0)),
            Width::Fat32 => le32(&bytes, 0) & 0x0fff_ffff,
        })
    }

    async fn set_entry<S: Source>(&self, canvas: &mut Canvas<'_, S>, cluster: u32, value: u32) -> Result<(), IsoError> {
        for table in &self.tables {
            let place = self.entry_place(*table, cluster);
            let mut bytes = canvas.read(place, self.entry_len()).await?;
            let new = value.to_le_bytes();
            match (self.width, bytes.as_mut_slice()) {
                // Two entries share the byte in the middle.
                (Width::Fat12, [low, high]) if cluster % 2 == 1 => {
                    *low = *low & 0x0f | new[0] << 4;
                    *high = new[0] >> 4 | new[1] << 4;
                }
                (Width::Fat12, [low, high]) => {
                    *low = new[0];
                    *high = *high & 0xf0 | new[1] & 0x0f;
                }
                // The top four bits are reserved.
                (Width::Fat32, [.., top]) => {
                    let kept = byte(&[*top], 0) & 0xf0;
                    bytes = vec![new[0], new[1], new[2], kept | new[3] & 0x0f];
                }
                _ => bytes = new[..2].to_vec(),
            }
            canvas.write(place, &bytes).await?;
        }
        Ok(())
    }

    fn entry_place(&self, table: u64, cluster: u32) -> u64 {
        self.offset + table + u64::from(cluster) * self.width.bits() / 8
    }

    fn entry_len(&self) -> usize {
        if self.width == Width::Fat32 { 4 } else { 2 }
    }
}
