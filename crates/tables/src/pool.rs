//! Byte buffers for packets, reused by size.
//!
//! Owns freed buffers in size classes, eight to a doubling, so that a buffer
//! wastes an eighth of its bytes at most and a steady stream of packets
//! allocates nothing. Spare buffers are bounded in bytes; beyond that the class
//! that hoards most gives one back to the allocator, so a change of packet
//! sizes does not leave the spare memory in classes nobody asks for. It does
//! not bound the buffers in use: the tables do, with [`buffer_bytes`].

use tachonym_packet::types::MAX_PACKET_BYTES;

const MIN_BYTES: usize = 64;
const N_CLASSES: usize = computed_class_of(MAX_PACKET_BYTES) + 1;

/// Lengths that differ in their lowest bits only are of one class.
const STEP_BYTES: usize = 8;

/// Classes by length in steps: several are asked for with each packet.
static CLASSES: [u8; MAX_PACKET_BYTES.div_ceil(STEP_BYTES)] = {
    let mut classes = [0; MAX_PACKET_BYTES.div_ceil(STEP_BYTES)];
    let mut step = 0;
    while step < classes.len() {
        classes[step] = computed_class_of(step * STEP_BYTES + 1) as u8;
        step += 1;
    }
    classes
};

/// Class of the smallest buffer that holds `len` bytes.
fn class_of(len: usize) -> usize {
    match CLASSES.get(len.saturating_sub(1) / STEP_BYTES) {
        Some(&class) => class.into(),
        None => computed_class_of(len),
    }
}

const fn computed_class_of(len: usize) -> usize {
    if len <= MIN_BYTES {
        return 0;
    }
    let top = len - 1;
    let exponent = top.ilog2();
    ((exponent as usize - 6) << 3) + ((top >> (exponent - 3)) & 7) + 1
}

const fn class_bytes(class: usize) -> usize {
    if class == 0 {
        return MIN_BYTES;
    }
    let (doublings, step) = ((class - 1) >> 3, (class - 1) & 7);
    (9 + step) << (doublings + 3)
}

/// Bytes that a buffer for a packet of `len` bytes occupies.
pub(crate) fn buffer_bytes(len: usize) -> usize {
    class_bytes(class_of(len))
}

/// Spare buffers by size, and the number of bytes handed out.
#[derive(Debug)]
pub(crate) struct BufferPool {
    free: [Vec<Box<[u8]>>; N_CLASSES],
    free_bytes: usize,
    max_free_bytes: usize,
    used_bytes: usize,
}

impl BufferPool {
    pub(crate) fn new(max_free_bytes: usize) -> Self {
        Self {
            free: [const { Vec::new() }; N_CLASSES],
            free_bytes: 0,
            max_free_bytes,
            used_bytes: 0,
        }
    }

    /// A buffer of [`buffer_bytes`] of the packet, beginning with a copy of it.
    ///
    /// # Panics
    /// If the packet exceeds [`MAX_PACKET_BYTES`].
    #[inline]
    pub(crate) fn take_copy(&mut self, packet: &[u8]) -> Box<[u8]> {
        let mut buffer = self.take(class_of(packet.len()));
        buffer[..packet.len()].copy_from_slice(packet);
        buffer
    }

    /// The place for a packet of `len` bytes in `buffer`, which is empty, or one of this pool
    /// that is exchanged if it has not [`buffer_bytes`] of the packet.
    ///
    /// # Panics
    /// If the packet exceeds [`MAX_PACKET_BYTES`].
    #[inline]
    pub(crate) fn fit<'a>(&mut self, buffer: &'a mut Box<[u8]>, len: usize) -> &'a mut [u8] {
        let class = class_of(len);
        if buffer.len() != class_bytes(class) {
            if !buffer.is_empty() {
                self.give(std::mem::take(buffer));
            }
            *buffer = self.take(class);
        }
        &mut buffer[..len]
    }

    #[inline]
    fn take(&mut self, class: usize) -> Box<[u8]> {
        let buffer = if let Some(buffer) = self.free[class].pop() {
            self.free_bytes -= buffer.len();
            buffer
        } else {
            vec![0; class_bytes(class)].into_boxed_slice()
        };
        self.used_bytes += buffer.len();
        buffer
    }

    /// Takes back a buffer of [`BufferPool::take_copy`].
    #[inline]
    pub(crate) fn give(&mut self, buffer: Box<[u8]>) {
        self.used_bytes -= buffer.len();
        self.free_bytes += buffer.len();
        self.free[class_of(buffer.len())].push(buffer);
        self.shrink_free();
    }

    pub(crate) fn set_max_free_bytes(&mut self, max_free_bytes: usize) {
        self.max_free_bytes = max_free_bytes;
        self.shrink_free();
    }

    pub(crate) const fn used_bytes(&self) -> usize {
        self.used_bytes
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        let lists: usize = self.free.iter().map(Vec::capacity).sum();
        self.used_bytes + self.free_bytes + lists * size_of::<Box<[u8]>>()
    }

    fn shrink_free(&mut self) {
        while self.free_bytes > self.max_free_bytes {
            let (_, hoard) = self
                .free
                .iter_mut()
                .enumerate()
                .max_by_key(|(class, list)| list.len() * class_bytes(*class))
                .expect("there is a class");
            let Some(buffer) = hoard.pop() else { return };
            self.free_bytes -= buffer.len();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_length_gets_a_buffer_that_holds_it_and_wastes_an_eighth_at_most() {
        for len in 1..=MAX_PACKET_BYTES {
            let bytes = buffer_bytes(len);
            assert!(
                bytes >= len && (bytes <= MIN_BYTES || bytes - len <= len / 8),
                "{len}"
            );
            assert_eq!(class_of(bytes), class_of(len));
            assert_eq!(class_of(len), computed_class_of(len));
        }
    }

    #[test]
    fn a_buffer_is_exchanged_only_for_a_packet_of_another_class() {
        let mut pool = BufferPool::new(4096);
        let mut buffer = Box::default();
        pool.fit(&mut buffer, 100).fill(7);
        let place = buffer.as_ptr();
        assert_eq!(pool.fit(&mut buffer, 97).len(), 97);
        assert_eq!((buffer.as_ptr(), pool.free_bytes), (place, 0));
        assert_eq!(pool.fit(&mut buffer, 1000).len(), 1000);
        assert_eq!(pool.used_bytes(), buffer_bytes(1000));
        assert_eq!(pool.free_bytes, buffer_bytes(100));
        assert_eq!(pool.fit(&mut buffer, 1).len(), 1);
        assert_eq!(pool.used_bytes(), MIN_BYTES);
    }

    #[test]
    fn spare_bytes_stay_within_their_limit_and_follow_the_sizes_in_demand() {
        let mut pool = BufferPool::new(4096);
        let small: Vec<_> = (0..100).map(|_| pool.take_copy(&[7; 100])).collect();
        assert_eq!(pool.used_bytes(), 100 * buffer_bytes(100));
        small.into_iter().for_each(|buffer| pool.give(buffer));
        assert_eq!(pool.used_bytes(), 0);
        assert!(pool.free_bytes <= 4096);
        let large = pool.take_copy(&[8; 1000]);
        pool.give(large);
        assert!(pool.free_bytes <= 4096);
        assert_eq!(
            pool.free[class_of(1000)].len(),
            1,
            "the hoard was evicted, not the newcomer"
        );
    }
}
