//! Who of several has a server for maintenance, and when.

use jiff::Timestamp;

/// Somebody who needs a server for maintenance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// Distinguishes it from every other one.
    pub id: String,
    /// The highest comes first.
    pub priority: i64,
    /// Whether it need not wait until whoever uses the server agrees.
    pub enforced: bool,
    /// Since when it is needed.
    pub since: Timestamp,
}

/// Who uses the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum User {
    /// Nobody.
    Nobody,
    /// Somebody who agrees to maintenance now, or does not.
    Somebody {
        /// Whether.
        agrees: bool,
    },
}

/// Whose turn it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turn<'a> {
    /// Nobody needs the server.
    Nobody,
    /// This one has it.
    Has(&'a Request),
    /// This one is the next, when whoever uses the server agrees.
    Awaits(&'a Request),
}

/// Whose turn it is. Whoever has the server keeps it for as long as it is needed; after that the first in the queue is the next, and
/// nobody overtakes it.
pub fn turn<'a>(holder: Option<&str>, requests: &'a [Request], user: User) -> Turn<'a> {
    if let Some(held) = requests.iter().find(|request| Some(request.id.as_str()) == holder) {
        return Turn::Has(held);
    }
    let rank = |request: &&Request| (-request.priority, !request.enforced, request.since, request.id.clone());
    match (requests.iter().min_by_key(rank), user) {
        (None, _) => Turn::Nobody,
        (Some(first), User::Somebody { agrees: false }) if !first.enforced => Turn::Awaits(first),
        (Some(first), _) => Turn::Has(first),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(id: &str, priority: i64, enforced: bool, since: i64) -> Request {
        Request { id: id.to_owned(), priority, enforced, since: Timestamp::from_second(since).unwrap() }
    }

    const USED: User = User::Somebody { agrees: false };

    #[test]
    fn the_first_is_whose_priority_is_highest_then_who_need_not_ask_then_the_oldest_then_by_name() {
        let table = [
            ([request("a", 1, false, 1), request("b", 2, false, 2)], "b"),
            ([request("a", 0, false, 1), request("b", -1, true, 1)], "a"),
            ([request("a", 0, false, 1), request("b", 0, true, 2)], "b"),
            ([request("a", 0, true, 2), request("b", 0, true, 1)], "b"),
            ([request("b", 0, true, 1), request("a", 0, true, 1)], "a"),
        ];
        for (requests, first) in table {
            let Turn::Has(next) = turn(None, &requests, User::Nobody) else { panic!("{requests:?}") };
            assert_eq!(next.id, first, "{requests:?}");
        }
        assert_eq!(turn(Some("gone"), &[], User::Nobody), Turn::Nobody);
    }

    #[test]
    fn whoever_uses_the_server_is_asked_unless_it_is_enforced() {
        let asks = [request("a", 0, false, 1)];
        assert_eq!(turn(None, &asks, USED), Turn::Awaits(&asks[0]));
        assert_eq!(turn(None, &asks, User::Somebody { agrees: true }), Turn::Has(&asks[0]));
        assert_eq!(turn(None, &asks, User::Nobody), Turn::Has(&asks[0]));
        let enforced = [request("a", 0, true, 1)];
        assert_eq!(turn(None, &enforced, USED), Turn::Has(&enforced[0]));
    }

    #[test]
    fn nobody_takes_the_server_from_who_has_it_or_overtakes_who_waits() {
        let both = [request("has", 0, false, 2), request("enforced", 9, true, 1)];
        assert_eq!(turn(Some("has"), &both, USED), Turn::Has(&both[0]));
        let waits = [request("asks", 9, false, 1), request("enforced", 0, true, 1)];
        assert_eq!(turn(None, &waits, USED), Turn::Awaits(&waits[0]));
    }
}
