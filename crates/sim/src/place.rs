//! Where in a tree the live parts are: the systems with their actions, the virtual drives, sessions and tasks.
//!
//! For our own trees it follows from the personality; for a recorded tree it is found by walking its links. From here
//! on both are served by the same code.

/// The service root.
pub(crate) const ROOT: &str = "/redfish/v1";

/// One ComputerSystem.
#[derive(Clone, Debug, Default)]
pub(crate) struct SystemPlace {
    pub(crate) id: String,
    pub(crate) path: String,
    /// Target of `#ComputerSystem.Reset`.
    pub(crate) reset: Option<String>,
    /// Allowable `ResetType`s; empty means that none are listed.
    pub(crate) reset_types: Vec<String>,
    /// Allowable override targets; empty means that none are listed.
    pub(crate) boot_targets: Vec<String>,
    /// The settings object that takes boot overrides.
    pub(crate) settings: Option<String>,
    /// A Boot without override (a baseboard) cannot be changed.
    pub(crate) boot: bool,
}

/// One virtual drive.
#[derive(Clone, Debug, Default)]
pub(crate) struct DrivePlace {
    /// Index of the system whose drive it is.
    pub(crate) system: usize,
    /// Index of the drive in the system.
    pub(crate) slot: usize,
    pub(crate) path: String,
    pub(crate) insert: Option<String>,
    pub(crate) eject: Option<String>,
    /// Without actions the resource itself is PATCHed.
    pub(crate) patched: bool,
    pub(crate) bootable: bool,
}

/// All live places of a tree. Paths have no slash at the end.
#[derive(Clone, Debug, Default)]
pub(crate) struct Places {
    pub(crate) systems: Vec<SystemPlace>,
    pub(crate) drives: Vec<DrivePlace>,
    /// Targets of `#Manager.Reset`.
    pub(crate) manager_resets: Vec<String>,
    pub(crate) sessions: String,
    pub(crate) tasks: String,
    pub(crate) monitors: String,
}

/// What a path leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Spot {
    System(usize),
    /// The settings object of a system.
    Settings(usize),
    Reset(usize),
    /// Index into [`Places::drives`].
    Drive(usize),
    Insert(usize),
    Eject(usize),
    ManagerReset,
    Sessions,
    Session(u32),
    Tasks,
    /// By number.
    Task(u32),
    Monitor(u32),
    /// Nothing of it lives.
    Still,
}

impl Places {
    /// `path` is normalised; case does not matter, as on those BMCs whose links differ in it.
    pub(crate) fn find(&self, path: &str, task_prefix: &str) -> Spot {
        let is = |place: &str| place.eq_ignore_ascii_case(path);
        let is_some = |place: &Option<String>| place.as_deref().is_some_and(is);
        for (i, system) in self.systems.iter().enumerate() {
            if is(&system.path) {
                return Spot::System(i);
            }
            if is_some(&system.reset) {
                return Spot::Reset(i);
            }
            if is_some(&system.settings) {
                return Spot::Settings(i);
            }
        }
        for (i, drive) in self.drives.iter().enumerate() {
            if is(&drive.path) {
                return Spot::Drive(i);
            }
            if is_some(&drive.insert) {
                return Spot::Insert(i);
            }
            if is_some(&drive.eject) {
                return Spot::Eject(i);
            }
        }
        if self.manager_resets.iter().any(|target| is(target)) {
            return Spot::ManagerReset;
        }
        if is(&self.sessions) {
            return Spot::Sessions;
        }
        if is(&self.tasks) {
            return Spot::Tasks;
        }
        let below = |place: &str| {
            path.get(..place.len())
                .filter(|start| start.eq_ignore_ascii_case(place))
                .and_then(|_| path[place.len()..].strip_prefix('/'))
        };
        if let Some(id) = below(&self.sessions).and_then(|id| id.parse().ok()) {
            return Spot::Session(id);
        }
        let number = |id: &str| id.strip_prefix(task_prefix).and_then(|id| id.parse().ok());
        if let Some(id) = below(&self.tasks).and_then(number) {
            return Spot::Task(id);
        }
        if let Some(id) = below(&self.monitors).and_then(number) {
            return Spot::Monitor(id);
        }
        Spot::Still
    }
}
