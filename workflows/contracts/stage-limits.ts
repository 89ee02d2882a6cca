/*
 * Limits that a host applies within its stages, so that it can report what took too long. The limits of the stages
 * themselves, in activity-options.ts, are longer.
 */

/** The time from the image to a sandbox in which the agent can start: five minutes of set-up, four of git, and the rest around them. */
export const provisionMs = 720_000;

/** The time to start an agent, which normally takes milliseconds. */
export const startMs = 300_000;
/**
 * The number of attempts to start an agent; some two minutes, in which a container engine may restart. The wait for its
 * end is tried much longer.
 */
export const startAttempts = 30;

/** An evaluation without its tests: five minutes of set-up, two of git, two for the patch, and the rest around them. */
export const preparationMs = 780_000;

/** The time that the stage `evaluate` gets on top of the tests' own limit. */
export const evaluationGraceMs = preparationMs + 120_000;

/** The time that the sandbox gets on top of the tests' own limit. It outlives the stage, which would otherwise find it gone. */
export const evaluationMarginMs = evaluationGraceMs + 300_000;

/**
 * The time that a rollout waits on a host whose last slot another one took, before the server may give it to any host. At
 * most one rollout of each placement queue waits so; the others wait on the server.
 */
export const placementWaitMs = 100_000;

/** The time of all commands that a task may run in its agent's sandbox once the agent has ended. */
export const collectMs = 600_000;
