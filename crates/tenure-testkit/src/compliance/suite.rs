//! The macro.

/// Makes a module of tests out of the lifecycle contract, for any agent.
///
/// The first argument names the module. The second is a function or closure that makes a fresh
/// agent, not yet started: anything that implements
/// [`AgentLifecycleProtocol`](tenure_core::life::AgentLifecycleProtocol), which is every
/// [`Agent`](tenure_core::agent::Agent) and every
/// [`ManagedAgent`](tenure_core::life::ManagedAgent).
///
/// ```
/// use tenure_core::agent::Agent;
/// use tenure_models::Passthrough;
/// use tenure_testkit::compliance;
///
/// fn echo() -> Agent {
///     Agent::builder("echo").model(Passthrough::new()).build().unwrap()
/// }
///
/// compliance!(echo_keeps_the_contract, echo);
/// ```
///
/// A third argument tests what happens when startup fails. It makes an agent whose startup does,
/// and which counts its shutdowns in the [`Calls`](crate::compliance::Calls) it is given.
///
/// ```
/// # use tenure_core::agent::Agent;
/// # use tenure_core::hook::{self, HookError};
/// # use tenure_models::Passthrough;
/// use tenure_testkit::compliance;
/// use tenure_testkit::compliance::Calls;
///
/// # fn echo() -> Agent {
/// #     Agent::builder("echo").model(Passthrough::new()).build().unwrap()
/// # }
/// fn broken(shutdowns: Calls) -> Agent {
///     Agent::builder("broken")
///         .model(Passthrough::new())
///         .with_lifecycle(hook::on_shutdown(move |_cx, _reason| {
///             shutdowns.count();
///             Box::pin(async { Ok(()) })
///         }))
///         .with_lifecycle(hook::on_start(|_cx| {
///             Box::pin(async { Err(HookError::new("no database")) })
///         }))
///         .build()
///         .unwrap()
/// }
///
/// compliance!(also_when_it_fails, echo, failing = broken);
/// ```
#[macro_export]
macro_rules! compliance {
    ($name:ident, $factory:expr $(, failing = $failing:expr)? $(,)?) => {
        /// The lifecycle contract, test by test.
        #[cfg(test)]
        mod $name {
            #[allow(unused_imports)]
            use super::*;

            #[test]
            fn starts_and_shuts_down_idempotently_and_never_again() {
                $crate::__private::block_on(async {
                    $crate::compliance::lifecycle(&($factory)()).await;
                });
            }

            #[test]
            fn shuts_down_without_having_been_started() {
                $crate::__private::block_on(async {
                    $crate::compliance::shutdown_before_startup(&($factory)()).await;
                });
            }

            #[test]
            fn pauses_and_resumes_only_where_that_is_legal() {
                $crate::__private::block_on(async {
                    $crate::compliance::pausing(&($factory)()).await;
                });
            }

            #[test]
            fn writes_only_what_the_agent_owns() {
                $crate::__private::block_on(async {
                    $crate::compliance::ownership(&($factory)()).await;
                });
            }

            #[test]
            fn holds_no_state_after_shutdown() {
                $crate::__private::block_on(async {
                    $crate::compliance::cleanup(&($factory)()).await;
                });
            }

            #[test]
            fn counts_its_life() {
                $crate::__private::block_on(async {
                    $crate::compliance::metrics(&($factory)()).await;
                });
            }

            #[test]
            fn lives_beside_others_and_starts_once() {
                $crate::__private::block_on(async {
                    $crate::compliance::concurrency($factory).await;
                });
            }

            $(
                #[test]
                fn rolls_a_failed_startup_back() {
                    $crate::__private::block_on(async {
                        let shutdowns = $crate::compliance::Calls::new();
                        let agent = ($failing)(::std::clone::Clone::clone(&shutdowns));
                        $crate::compliance::startup_failure(&agent, &shutdowns).await;
                    });
                }
            )?
        }
    };
}
