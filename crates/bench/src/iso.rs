//! Our boot service beside nginx: the same image, the same machine, the same readers, in turns.
//!
//! The image is the user's: nginx has it, and our service reads it from there, writes kernel parameters into it, and hands it
//! out. Beside nginx that hands out its own file stands an nginx that fetches it from the first one (`proxy_pass`), which is what
//! our service does without its cache: on one machine every byte then goes the whole way twice.

mod image;
mod origin;
mod readers;
mod service;

use std::path::Path;
use std::time::Duration;

use anyhow::{Result, bail};
use tokio::time::Instant;

use self::origin::Nginx;
use self::readers::Target;
use self::service::Served;
use crate::process::{float, kept, resident_mb, usage};

pub(crate) use self::service::{Part, play};

/// How much is measured.
#[derive(Debug, clap::Args)]
pub(crate) struct Streaming {
    /// Size of the ISO
    #[arg(long, default_value_t = 600, value_name = "MB")]
    iso_size: u32,
    /// How often each is read in turn
    #[arg(long, default_value_t = 9, value_name = "NUMBER")]
    rounds: u32,
}

const READERS: [u64; 3] = [1, 4, 16];
const SLOW_READERS: usize = 50;
const SLOWLY: Duration = Duration::from_secs(10);
const SPEED_WANTED: f64 = 0.9;
const MEMORY_WANTED_MB: f64 = 20.0;

/// Prints how fast images are served, and what readers cost.
pub(crate) async fn print(args: &Streaming) -> Result<()> {
    let folder = tempfile::Builder::new().prefix("beskar7-bench-").tempdir()?;
    println!("an ISO of GRUB with {} MB of noise in it, in the page cache; readers on the same machine", args.iso_size);
    image::build(folder.path(), args.iso_size)?;
    let nginx = Nginx::start(folder.path()).await?;
    let kept = folder.path().join("kept");
    print_speed(&nginx, &kept, args.rounds).await?;
    print_memory(&nginx, &kept).await
}

/// One server in the comparison.
struct Rival {
    name: &'static str,
    target: Target,
    rates: Vec<f64>,
}

impl Rival {
    /// Round by round, so that it counts less what else the machine did meanwhile.
    fn compared_with(&self, other: &Self) -> Vec<f64> {
        self.rates.iter().zip(&other.rates).map(|(ours, theirs)| ours / theirs).collect()
    }
}

async fn print_speed(nginx: &Nginx, folder: &Path, rounds: u32) -> Result<()> {
    let passing = Served::start(&nginx.iso_url(), None).await?;
    let keeping = Served::start(&nginx.iso_url(), Some(folder)).await?;
    let size = nginx.file().size().await?;
    let first = rate(&keeping.target()?, 1, size).await?;
    println!("speed, median of {rounds} rounds, two workers each");
    println!("  the first of all readers of beskar7: {first:.0} MB/s");
    for readers in READERS {
        let rival = |name, target| Rival { name, target, rates: Vec::new() };
        let mut rivals = [
            rival("nginx", nginx.file()),
            rival("nginx that fetches from nginx", nginx.proxy()),
            rival("beskar7 without its cache", passing.target()?),
            rival("beskar7", keeping.target()?),
        ];
        for _ in 0..rounds {
            for rival in &mut rivals {
                rival.rates.push(rate(&rival.target, readers, size).await?);
            }
        }
        println!("  {readers} at once");
        let [real, .., ours] = &rivals;
        for rival in &rivals {
            println!(
                "    {:<30} {:>7.0} MB/s   {:>5.2}x",
                rival.name,
                median(&rival.rates),
                median(&rival.compared_with(real))
            );
        }
        let ratio = median(&ours.compared_with(real));
        println!("    (wanted: at least {SPEED_WANTED}x of nginx: {})", kept(ratio >= SPEED_WANTED));
    }
    for (name, served) in [("without its cache", &passing), ("with it", &keeping)] {
        let (cpu, _) = usage(served.pid()?)?;
        println!("  beskar7 {name} used {:.1} s of CPU for that", cpu.as_secs_f64());
    }
    passing.stop().await?;
    keeping.stop().await
}

/// MB/s of all readers together. Few read the whole image, many a share of it.
async fn rate(target: &Target, readers: u64, size: u64) -> Result<f64> {
    let shares = (readers / 4).max(1);
    let started = Instant::now();
    let read = readers::read_fast(target, readers, shares, size).await?;
    let took = started.elapsed();
    if read != size / shares * readers {
        bail!("{} answered with {read} bytes to {readers} readers", target.url());
    }
    Ok(float(read) / took.as_secs_f64() / 1e6)
}

async fn print_memory(nginx: &Nginx, folder: &Path) -> Result<()> {
    println!("memory for {SLOW_READERS} readers, half of them slow, half by ranges, for {} s", SLOWLY.as_secs());
    for (name, folder) in [("beskar7 without its cache", None), ("beskar7", Some(folder))] {
        // A fresh process: what fast readers left behind would hide what slow ones cost.
        let served = Served::start(&nginx.iso_url(), folder).await?;
        let target = served.target()?;
        target.size().await?;
        let idle = resident_mb(served.pid()?, "VmRSS:")?;
        let read = readers::read_slowly(&target, SLOW_READERS, SLOWLY).await?;
        let peak = resident_mb(served.pid()?, "VmHWM:")?;
        println!(
            "  {name:<26} {:>6.1} MB more than the {idle:.1} MB before; {:.0} MB were read   (wanted: at most {MEMORY_WANTED_MB} MB more: {})",
            peak - idle,
            float(read) / 1e6,
            kept(peak - idle <= MEMORY_WANTED_MB)
        );
        served.stop().await?;
    }
    Ok(())
}

/// The middle of some numbers; 0 if there are none.
fn median(numbers: &[f64]) -> f64 {
    let mut sorted = numbers.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or_default()
}
