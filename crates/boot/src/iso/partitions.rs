//! MBR and GPT of hybrid images, which also boot from a stick. BMCs show virtual media as either.

use super::bytes_at::{byte, le32, le64};
use super::canvas::Canvas;
use super::source::Source;
use super::{IsoError, SECTOR, limits};

const BLOCK: u64 = 512;
const MBR_ENTRIES: u64 = 446;
/// Where the file system's first descriptor lies: the partition with it is the ISO's own.
const DESCRIPTORS: u64 = 16 * SECTOR / BLOCK;

const EFI_SYSTEM: [u8; 16] =
    [0x28, 0x73, 0x2a, 0xc1, 0x1f, 0xf8, 0xd2, 0x11, 0xba, 0x4b, 0x00, 0xa0, 0xc9, 0x3e, 0xc9, 0x3b];

/// A partition, in blocks of 512 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Partition {
    /// Of its entry in the table, in bytes: in the image for MBR, in the table for GPT.
    entry: u64,
    start: u64,
    /// One past the last block.
    end: u64,
    kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    EfiSystem,
    /// Stands for the GPT, over the whole disk.
    Protective,
    Other,
}

struct Gpt {
    header: Vec<u8>,
    table: Vec<u8>,
    entry_len: usize,
}

/// Where partitions begin, in bytes.
#[derive(Debug, Default)]
pub(crate) struct Starts {
    /// EFI system partitions.
    pub(crate) efi: Vec<u64>,
    /// Others, where a volume of ISO 9660 could begin.
    pub(crate) others: Vec<u64>,
}

/// Where partitions begin. An image too short for a table has none.
pub(crate) async fn starts<S: Source>(canvas: &mut Canvas<'_, S>) -> Result<Starts, IsoError> {
    let mut starts = Starts::default();
    if canvas.size() < 2 * BLOCK {
        return Ok(starts);
    }
    let gpt = Gpt::read(canvas).await?;
    let mut all = mbr(canvas).await?;
    all.extend(gpt.iter().flat_map(Gpt::partitions));
    for partition in all {
        let list = if partition.kind == Kind::EfiSystem { &mut starts.efi } else { &mut starts.others };
        let inside = |start: &u64| (1..canvas.size()).contains(start);
        let Some(start) = partition.start.checked_mul(BLOCK).filter(inside) else { continue };
        if !list.contains(&start) && list.len() < limits::BOOT_IMAGES {
            list.push(start);
        }
    }
    starts.others.retain(|start| start.is_multiple_of(SECTOR));
    Ok(starts)
}

/// Lets the tables know that the image has become longer: the backup of the GPT moves to the new end, and the ISO's own
/// partition grows with it, unless it would cover another one that it did not cover (firmware skips such partitions).
pub(crate) async fn follow_growth<S: Source>(canvas: &mut Canvas<'_, S>, old: u64) -> Result<(), IsoError> {
    let data = canvas.size() / BLOCK;
    let gpt = Gpt::read(canvas).await?;
    let backup = gpt.as_ref().map_or(0, |gpt| (gpt.table.len() as u64).next_multiple_of(BLOCK) + BLOCK);
    let size = (canvas.size() + backup).next_multiple_of(SECTOR);
    canvas.grow(size)?;

    let partitions = mbr(canvas).await?;
    for partition in &partitions {
        let end = match partition.kind {
            Kind::Protective if partition.end >= old / BLOCK => size / BLOCK,
            _ => grown(partition, &partitions, data),
        };
        let blocks = u32::try_from(end - partition.start).unwrap_or(u32::MAX);
        canvas.write(partition.entry + 12, &blocks.to_le_bytes()).await?;
    }
    match gpt {
        Some(gpt) => gpt.write(canvas, data, size / BLOCK).await,
        None => Ok(()),
    }
}

/// Where a partition ends when the data ends there.
fn grown(partition: &Partition, all: &[Partition], data: u64) -> u64 {
    let covers = |end: u64| {
        all.iter()
            .filter(|other| other.entry != partition.entry && other.kind != Kind::Protective)
            .filter(|other| other.start < end && partition.start < other.end)
            .count()
    };
    let has_descriptors = (partition.start..partition.end).contains(&DESCRIPTORS);
    let end = partition.end.max(data);
    if has_descriptors && covers(end) == covers(partition.end) { end } else { partition.end }
}

async fn mbr<S: Source>(canvas: &mut Canvas<'_, S>) -> Result<Vec<Partition>, IsoError> {
    let block = canvas.read(0, 512).await?;
    if block.get(510..512) != Some(&[0x55, 0xaa]) {
        return Ok(Vec::new());
    }
    let entries = (0..4_u8).map(|number| MBR_ENTRIES + u64::from(number) * 16);
    Ok(entries
        .filter_map(|entry| {
            let row = block.get(usize::try_from(entry).ok()?..)?;
            let (start, blocks) = (u64::from(le32(row, 8)), u64::from(le32(row, 12)));
            let kind = match byte(row, 4) {
                0xef => Kind::EfiSystem,
                0xee => Kind::Protective,
                _ => Kind::Other,
            };
            (blocks > 0).then_some(Partition { entry, start, end: start + blocks, kind })
        })
        .collect())
}

impl Gpt {
    /// A GPT that is not valid is none: firmware and kernels do not look at it either.
    async fn read<S: Source>(canvas: &mut Canvas<'_, S>) -> Result<Option<Self>, IsoError> {
        let header = canvas.read(BLOCK, 512).await?;
        let len = le32(&header, 12) as usize;
        let Some(mut sealed) =
            header.get(..len.max(92)).map(<[u8]>::to_vec).filter(|_| header.starts_with(b"EFI PART"))
        else {
            return Ok(None);
        };
        sealed[16..20].fill(0);
        let (count, entry_len) = (le32(&header, 80) as usize, le32(&header, 84) as usize);
        let table_len = count.saturating_mul(entry_len);
        let place = le64(&header, 72).saturating_mul(BLOCK);
        let fits = place.saturating_add(table_len as u64) <= canvas.size();
        if crc32fast::hash(&sealed) != le32(&header, 16)
            || entry_len < 128
            || table_len > limits::PARTITION_TABLE
            || !fits
        {
            return Ok(None);
        }
        let table = canvas.read(place, table_len).await?;
        Ok((crc32fast::hash(&table) == le32(&header, 88)).then_some(Self { header, table, entry_len }))
    }

    fn partitions(&self) -> Vec<Partition> {
        let rows = self.table.chunks_exact(self.entry_len).enumerate();
        rows.filter(|(_, row)| row.iter().take(16).any(|byte| *byte != 0))
            .map(|(number, row)| Partition {
                entry: (number * self.entry_len) as u64,
                start: le64(row, 32),
                end: le64(row, 40).saturating_add(1),
                kind: if row.starts_with(&EFI_SYSTEM) { Kind::EfiSystem } else { Kind::Other },
            })
            .collect()
    }

    /// Writes both copies, for data up to one block and an image up to another.
    async fn write<S: Source>(mut self, canvas: &mut Canvas<'_, S>, data: u64, blocks: u64) -> Result<(), IsoError> {
        let partitions = self.partitions();
        for partition in &partitions {
            let last = grown(partition, &partitions, data).saturating_sub(1);
            let at = usize::try_from(partition.entry).unwrap_or_default() + 40;
            put(&mut self.table, at, &last.to_le_bytes());
        }
        let table_blocks = (self.table.len() as u64).div_ceil(BLOCK);
        let (last, backup_table) = (blocks - 1, blocks - 1 - table_blocks);
        let primary_table = le64(&self.header, 72);
        put(&mut self.header, 48, &(backup_table - 1).to_le_bytes());
        put(&mut self.header, 88, &crc32fast::hash(&self.table).to_le_bytes());
        for (own, other, table) in [(1, last, primary_table), (last, 1, backup_table)] {
            put(&mut self.header, 24, &own.to_le_bytes());
            put(&mut self.header, 32, &other.to_le_bytes());
            put(&mut self.header, 72, &table.to_le_bytes());
            put(&mut self.header, 16, &[0; 4]);
            let len = (le32(&self.header, 12) as usize).clamp(92, 512);
            let sum = crc32fast::hash(self.header.get(..len).unwrap_or_default());
            put(&mut self.header, 16, &sum.to_le_bytes());
            canvas.write(table * BLOCK, &self.table).await?;
            canvas.write(own * BLOCK, &self.header).await?;
        }
        Ok(())
    }
}

fn put(bytes: &mut [u8], at: usize, value: &[u8]) {
    if let Some(target) = bytes.get_mut(at..at + value.len()) {
        target.copy_from_slice(value);
    }
}
