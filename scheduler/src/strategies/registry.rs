//! Macros over the list of strategies: the names, the strategies with their options, the plans.

/// The names, in the order of the list.
macro_rules! define_names {
    (
        decide { $($Name:ident $file:ident $text:literal,)* }
        select { $($Selector:ident $selector_file:ident $selector_text:literal,)* }
    ) => {
        /// A strategy without its options.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum StrategyName {
            $(#[doc = concat!("`", $text, "`")] $Name,)*
            $(#[doc = concat!("`", $selector_text, "`")] $Selector,)*
        }

        impl StrategyName {
            /// The texts of [`StrategyName::ALL`].
            pub const TEXTS: &'static [&'static str] = &[$($text,)* $($selector_text,)*];

            /// Every strategy.
            pub const ALL: [Self; Self::TEXTS.len()] =
                [$(Self::$Name,)* $(Self::$Selector,)*];

            /// Its name in job files and reports.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$Name => $text,)*
                    $(Self::$Selector => $selector_text,)*
                }
            }
        }
    };
}

/// The strategies with their options, and the plans of those that decide.
macro_rules! define_strategies {
    (
        decide { $($Name:ident $file:ident $text:literal,)* }
        select { $($Selector:ident $selector_file:ident $selector_text:literal,)* }
    ) => {
        $(pub use $file::$Name;)*
        $(pub use $selector_file::$Selector;)*

        /// Any strategy, with its options.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum AnyStrategy {
            $(#[doc = concat!("`", $text, "`")] $Name($Name),)*
            $(#[doc = concat!("`", $selector_text, "`")] $Selector($Selector),)*
        }

        $(impl From<$Name> for AnyStrategy {
            fn from(strategy: $Name) -> Self {
                Self::$Name(strategy)
            }
        })*

        $(impl From<$Selector> for AnyStrategy {
            fn from(strategy: $Selector) -> Self {
                Self::$Selector(strategy)
            }
        })*

        // The name in the file equals that in the list.
        $(const _: () = assert!(matches!(<$Name as Strategy>::NAME, StrategyName::$Name));)*
        $(const _: () = assert!(matches!(<$Selector as Strategy>::NAME, StrategyName::$Selector));)*

        impl AnyStrategy {
            fn declared(&self) -> &dyn Declared {
                match self {
                    $(Self::$Name(strategy) => strategy,)*
                    $(Self::$Selector(strategy) => strategy,)*
                }
            }

            fn declared_mut(&mut self) -> &mut dyn Declared {
                match self {
                    $(Self::$Name(strategy) => strategy,)*
                    $(Self::$Selector(strategy) => strategy,)*
                }
            }

            /// Whether it selects one of the other strategies for each epoch.
            pub fn is_selector(&self) -> bool {
                match self {
                    $(Self::$Name(_) => false,)*
                    $(Self::$Selector(_) => true,)*
                }
            }

            /// The plan of an epoch, and the selection of `auto` for it.
            pub(crate) fn plan(&self, terms: &Terms) -> (AnyPlan, Option<Selection>) {
                match self {
                    $(Self::$Name(strategy) => {
                        (AnyPlan::$Name(EpochPlanner::plan(strategy, terms)), None)
                    })*
                    $(Self::$Selector(strategy) => {
                        let selection = StrategySelector::pick(strategy, terms);
                        (selection.strategy.plan(terms).0, Some(selection))
                    })*
                }
            }
        }

        impl StrategyName {
            /// The strategy with the defaults of its options.
            pub fn with_defaults(self) -> AnyStrategy {
                match self {
                    $(Self::$Name => AnyStrategy::$Name(<$Name>::default()),)*
                    $(Self::$Selector => AnyStrategy::$Selector(<$Selector>::default()),)*
                }
            }
        }

        /// The plan of an epoch under any strategy.
        #[derive(Debug, Clone)]
        pub(crate) enum AnyPlan {
            $($Name(<$Name as EpochPlanner>::Plan),)*
        }

        impl AnyPlan {
            /// How the strategy consumes.
            pub(crate) fn consumption(&self) -> Consumption {
                match self {
                    $(Self::$Name(_) => {
                        <<$Name as EpochPlanner>::Plan as Plan>::CONSUMPTION
                    })*
                }
            }
        }

        // Inlined, because it is called at each step of an epoch and most answers are as short as a
        // call.
        delegate_to_plans! { #[inline(always)] [$($Name)*]
            fn next(self: &mut Self, board: &Board) -> Next;
            fn consumed(self: &mut Self, board: &Board);
            fn next_fetch(self: &mut Self, board: &mut Board) -> Option<BatchIndex>;
            fn pick_for_host(self: &mut Self, board: &mut Board) -> Option<BatchIndex>;
            fn device_may_precede(self: &Self, board: &Board, batch: BatchIndex) -> bool;
            fn grant(self: &mut Self, board: &Board, device: DeviceId) -> Grant;
            fn granted(self: &mut Self, board: &Board, device: DeviceId, grant: Grant);
            fn grants_ended(self: &Self, board: &Board, device: DeviceId) -> bool;
            fn learn(self: &mut Self, board: &mut Board);
        }

        delegate_to_plans! { #[inline(never)] [$($Name)*]
            fn start(self: &mut Self, board: &mut Board);
            fn give_to_host(self: &mut Self, batch: BatchIndex) -> bool;
            fn is_late_with(self: &mut Self, board: &Board, batch: BatchIndex) -> bool;
            fn takes_preloaded(self: &Self, board: &Board, batch: BatchIndex) -> bool;
            fn rescue(self: &mut Self, board: &Board) -> StallAction;
            fn split(self: &Self) -> (Option<u32>, bool);
            fn record(self: &Self) -> Option<Vec<u64>>;
            fn propose(self: &mut Self, board: &Board, proposal: &mut Proposal);
            fn agreed(self: &mut Self, board: &mut Board, combined: &Proposal);
        }
    };
}

/// Methods of `AnyPlan` that forward to the plan of the deciding strategy: those of `Plan`.
macro_rules! delegate_to_plans {
    (#[$inline:meta] $Names:tt $(fn $method:ident($($signature:tt)*) $(-> $Out:ty)?;)*) => {
        impl AnyPlan {
            $(delegate_to_plans! { @one #[$inline] $Names $method ($($signature)*) $(-> $Out)? })*
        }
    };
    (@one #[$inline:meta] $Names:tt $method:ident
        ($this:ident: $This:ty $(, $argument:ident: $Type:ty)*) $(-> $Out:ty)?
    ) => {
        #[$inline]
        pub(crate) fn $method($this: $This $(, $argument: $Type)*) $(-> $Out)? {
            delegate_to_plans! { @match $Names $this plan $method (plan $(, $argument)*) }
        }
    };
    (@match [$($Name:ident)*] $this:ident $plan:ident $method:ident $arguments:tt) => {
        match $this {
            $(Self::$Name($plan) => Plan::$method $arguments,)*
        }
    };
}
