//! Order in a graph of things that need one another.
//!
//! Nodes are positions in a slice; `needs[n]` lists what `n` needs. Among
//! nodes that could come next the lowest position goes first, so the same
//! input always gives the same order.

use std::collections::BTreeSet;

/// Nodes that need each other in a circle, each one needing the next and the
/// last one the first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cycle(pub Vec<usize>);

/// Every node after all that it needs, or a circle that makes this impossible.
pub fn topological_order(needs: &[Vec<usize>]) -> Result<Vec<usize>, Cycle> {
    let needed_by = reversed(needs);
    let mut unmet: Vec<usize> = needs.iter().map(|of| distinct(of).len()).collect();
    let mut ready: BTreeSet<usize> = (0..needs.len()).filter(|&node| unmet[node] == 0).collect();
    let mut order = Vec::with_capacity(needs.len());
    while let Some(node) = ready.pop_first() {
        order.push(node);
        for &next in &needed_by[node] {
            unmet[next] -= 1;
            if unmet[next] == 0 {
                ready.insert(next);
            }
        }
    }
    if order.len() == needs.len() { Ok(order) } else { Err(circle_among(needs, &unmet)) }
}

/// For each node, the nodes that need it.
pub fn reversed(needs: &[Vec<usize>]) -> Vec<Vec<usize>> {
    let mut needed_by = vec![Vec::new(); needs.len()];
    for (node, of) in needs.iter().enumerate() {
        for need in distinct(of) {
            needed_by[need].push(node);
        }
    }
    needed_by
}

fn distinct(of: &[usize]) -> BTreeSet<usize> {
    of.iter().copied().collect()
}

/// Walks from a stuck node along stuck needs until one repeats: every stuck
/// node has at least one stuck need, so this ends in a circle.
fn circle_among(needs: &[Vec<usize>], unmet: &[usize]) -> Cycle {
    let stuck = |node: usize| unmet[node] > 0;
    let mut walked: Vec<usize> = (0..needs.len()).filter(|&node| stuck(node)).take(1).collect();
    while let Some(&last) = walked.last() {
        let Some(&next) = needs[last].iter().find(|&&need| stuck(need)) else { break };
        if let Some(start) = walked.iter().position(|&seen| seen == next) {
            return Cycle(walked.split_off(start));
        }
        walked.push(next);
    }
    Cycle(walked)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_chain_and_a_diamond_come_out_in_order() {
        assert_eq!(topological_order(&[vec![1], vec![2], vec![]]), Ok(vec![2, 1, 0]));
        assert_eq!(
            topological_order(&[vec![], vec![0], vec![0], vec![1, 2]]),
            Ok(vec![0, 1, 2, 3])
        );
    }

    #[test]
    fn a_circle_is_named_without_its_bystanders() {
        // 0 needs 1, 1 and 2 need each other, 3 needs nothing.
        assert_eq!(topological_order(&[vec![1], vec![2], vec![1], vec![]]), Err(Cycle(vec![1, 2])));
        assert_eq!(topological_order(&[vec![0]]), Err(Cycle(vec![0])));
    }

    #[test]
    fn a_need_written_twice_counts_once() {
        assert_eq!(topological_order(&[vec![], vec![0, 0]]), Ok(vec![0, 1]));
    }

    proptest! {
        /// Either every node comes after its needs, or the circle is real.
        #[test]
        fn orders_are_orders_and_circles_are_circles(
            needs in (1usize..12).prop_flat_map(|nodes| {
                proptest::collection::vec(proptest::collection::vec(0..nodes, 0..3), nodes)
            })
        ) {
            match topological_order(&needs) {
                Ok(order) => {
                    prop_assert_eq!(order.len(), needs.len());
                    let place = |node| order.iter().position(|&at| at == node).unwrap();
                    for (node, of) in needs.iter().enumerate() {
                        for &need in of {
                            prop_assert!(place(need) < place(node));
                        }
                    }
                }
                Err(Cycle(circle)) => {
                    prop_assert!(!circle.is_empty());
                    for (at, node) in circle.iter().enumerate() {
                        let next = circle[(at + 1) % circle.len()];
                        prop_assert!(needs[*node].contains(&next));
                    }
                }
            }
        }
    }
}
