//! The one source of chance in a simulation (`SplitMix64`: tiny, and the same
//! on every machine).

#[derive(Clone, Debug)]
pub struct Rng(u64);

impl Rng {
    pub fn new(seed: u64) -> Self {
        // Neighbouring seeds should not begin alike.
        let mut rng = Rng(seed ^ 0x5DEE_CE66_D1CE_4E5B);
        rng.draw();
        rng
    }

    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A number from 0 up to but not including `bound`.
    pub fn below(&mut self, bound: u64) -> u64 {
        if bound == 0 { 0 } else { self.draw() % bound }
    }

    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high - low + 1)
    }

    pub fn percent(&mut self, chance: u64) -> bool {
        self.below(100) < chance
    }

    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> Option<&'a T> {
        let at = usize::try_from(self.below(from.len() as u64)).unwrap_or(0);
        from.get(at)
    }

    pub fn hex(&mut self, digits: usize) -> String {
        let words: Vec<String> =
            (0..digits.div_ceil(16)).map(|_| format!("{:016x}", self.draw())).collect();
        let mut text = words.concat();
        text.truncate(digits);
        text
    }
}
