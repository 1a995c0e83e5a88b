//! What may wait to be sent.
//!
//! Owns the account of the bytes that wait in the queues of all faces. Each
//! face has a reserve of its own; what it has beyond is taken from a pool that
//! all share, as long as it takes no more of it than it leaves free. So faces
//! that nobody reads from share the pool among them and cannot silence the
//! others, however many they are. The queues themselves are the faces'.

/// See the module documentation.
#[derive(Debug)]
pub(super) struct Backlogs {
    /// What every face may have, whatever the others have.
    reserve_bytes: usize,
    /// What all may have beyond their reserves.
    limit_bytes: usize,
    used_bytes: usize,
}

impl Backlogs {
    pub(super) const fn new(reserve_bytes: usize, limit_bytes: usize) -> Self {
        Self {
            reserve_bytes,
            limit_bytes,
            used_bytes: 0,
        }
    }

    /// How long the queue of any one face may become now: beyond its reserve
    /// no more than is free (Choudhury and Hahne 1998, "Dynamic queue length
    /// thresholds for shared-memory packet switches", with α = 1).
    #[inline]
    pub(super) const fn allowance_bytes(&self) -> usize {
        let free_bytes = self.limit_bytes.saturating_sub(self.used_bytes);
        self.reserve_bytes.saturating_add(free_bytes)
    }

    /// The queue of a face had `before_bytes` and has `after_bytes`.
    #[inline]
    pub(super) const fn changed(&mut self, before_bytes: usize, after_bytes: usize) {
        self.used_bytes -= before_bytes.saturating_sub(self.reserve_bytes);
        self.used_bytes += after_bytes.saturating_sub(self.reserve_bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reserve_of_a_face_is_there_whatever_the_others_have() {
        let mut backlogs = Backlogs::new(100, 1000);
        assert_eq!(backlogs.allowance_bytes(), 1100);
        let mut lens = Vec::new();
        for _ in 0..50 {
            let mut len = 0;
            while len < backlogs.allowance_bytes() {
                backlogs.changed(len, len + 1);
                len += 1;
            }
            lens.push(len);
        }
        assert_eq!(lens[0], 600);
        assert!(lens.iter().all(|&len| len >= 100), "{lens:?}");
        assert!(lens.iter().sum::<usize>() <= 1000 + 50 * 100);
        for len in lens {
            backlogs.changed(len, 0);
        }
        assert_eq!(backlogs.used_bytes, 0);
    }
}
