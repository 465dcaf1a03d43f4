//! The line between a server and the machine that has its power and its boots: orders go down, reports come up.

use std::time::Duration;

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::server::{Guest, PowerState, ResetType};

/// What a machine is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// Start, if it is off.
    On,
    /// Cut the power.
    Off,
    /// Cut the power and start again.
    Restart,
    /// Ask the guest to shut down.
    ShutDown,
    /// Ask the guest to shut down, and start again when it has.
    ShutDownAndStart,
    /// A non-maskable interrupt.
    Nmi,
    /// The image that is in the drive now.
    Medium(Option<String>),
}

/// An order, and what a slow BMC takes to pass it on.
pub(crate) type Orders = UnboundedReceiver<(Order, Duration)>;

/// The server's end.
#[derive(Clone, Debug)]
pub(crate) struct Link {
    orders: UnboundedSender<(Order, Duration)>,
    /// As the machine reported it, or as it will be by the last order.
    power: PowerState,
    /// What the machine knows to be in its drive.
    medium: Option<String>,
}

impl Link {
    /// To a machine that is off and has an empty drive.
    pub(crate) fn new() -> (Self, Orders) {
        let (sender, orders) = unbounded_channel();
        (Self { orders: sender, power: PowerState::Off, medium: None }, orders)
    }

    pub(crate) fn power(&self) -> PowerState {
        self.power
    }

    /// Takes a report, and returns what the power was before.
    pub(crate) fn report(&mut self, power: PowerState) -> PowerState {
        std::mem::replace(&mut self.power, power)
    }

    /// Tells the machine what is in its drive, if that is new.
    pub(crate) fn load(&mut self, medium: Option<&str>) {
        if self.medium.as_deref() != medium {
            self.medium = medium.map(str::to_owned);
            self.send(Order::Medium(self.medium.clone()), Duration::ZERO);
        }
    }

    /// Tells the machine to carry out a reset. False if there is nothing to do.
    pub(crate) fn reset(&mut self, kind: ResetType, guest: Guest, extra: Duration) -> bool {
        let off = self.power == PowerState::Off;
        let order = match kind {
            ResetType::Nmi => {
                if !off {
                    self.send(Order::Nmi, extra);
                }
                return false;
            }
            ResetType::ForceOff | ResetType::GracefulShutdown if off => return false,
            _ if off => Order::On,
            // It goes off first.
            ResetType::On | ResetType::ForceOn if self.power == PowerState::PoweringOff => Order::On,
            ResetType::On | ResetType::ForceOn => return false,
            ResetType::ForceOff => Order::Off,
            ResetType::ForceRestart | ResetType::PowerCycle | ResetType::FullPowerCycle => Order::Restart,
            ResetType::GracefulShutdown | ResetType::PushPowerButton | ResetType::GracefulRestart
                if guest == Guest::Ignores =>
            {
                return false;
            }
            ResetType::GracefulShutdown | ResetType::PushPowerButton => Order::ShutDown,
            ResetType::GracefulRestart => Order::ShutDownAndStart,
        };
        match order {
            Order::On if off => self.power = PowerState::PoweringOn,
            Order::Off => self.power = PowerState::PoweringOff,
            _ => {}
        }
        self.send(order, extra);
        true
    }

    fn send(&self, order: Order, extra: Duration) {
        // A machine that is gone obeys nobody; its server shows what was reported last.
        let _ = self.orders.send((order, extra));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(orders: &mut Orders) -> Vec<Order> {
        std::iter::from_fn(|| orders.try_recv().ok()).map(|(order, _)| order).collect()
    }

    #[test]
    fn every_reset_type_becomes_the_order_that_fits_the_power() {
        use PowerState::{Off, On, PoweringOff, PoweringOn};
        // power, command, order, power then
        let table = [
            (Off, ResetType::On, Some(Order::On), PoweringOn),
            (Off, ResetType::ForceRestart, Some(Order::On), PoweringOn),
            (Off, ResetType::PushPowerButton, Some(Order::On), PoweringOn),
            (Off, ResetType::ForceOff, None, Off),
            (Off, ResetType::GracefulShutdown, None, Off),
            (Off, ResetType::Nmi, None, Off),
            (On, ResetType::On, None, On),
            (On, ResetType::ForceOff, Some(Order::Off), PoweringOff),
            (On, ResetType::GracefulShutdown, Some(Order::ShutDown), On),
            (On, ResetType::GracefulRestart, Some(Order::ShutDownAndStart), On),
            (On, ResetType::ForceRestart, Some(Order::Restart), On),
            (On, ResetType::PowerCycle, Some(Order::Restart), On),
            (On, ResetType::Nmi, Some(Order::Nmi), On),
            (PoweringOff, ResetType::On, Some(Order::On), PoweringOff),
        ];
        for (power, kind, order, then) in table {
            let (mut link, mut orders) = Link::new();
            link.report(power);
            link.reset(kind, Guest::Obeys, Duration::ZERO);
            assert_eq!(
                (told(&mut orders), link.power()),
                (order.into_iter().collect(), then),
                "{kind:?} when {power:?}"
            );
        }
    }

    #[test]
    fn a_guest_that_ignores_requests_is_not_asked() {
        let (mut link, mut orders) = Link::new();
        link.report(PowerState::On);
        assert!(!link.reset(ResetType::GracefulShutdown, Guest::Ignores, Duration::ZERO));
        assert_eq!(told(&mut orders), []);
    }

    #[test]
    fn a_medium_is_told_once() {
        let (mut link, mut orders) = Link::new();
        let image = "http://192.0.2.1/a.iso";
        link.load(None);
        link.load(Some(image));
        link.load(Some(image));
        link.load(None);
        assert_eq!(told(&mut orders), [Order::Medium(Some(image.to_owned())), Order::Medium(None)]);
    }
}
