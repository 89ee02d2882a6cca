/** The kinds of sandboxes, in the order in which `auto` looks for one that is ready and supports the task. */
export const sandboxKinds = ['docker', 'local'] as const;

export type SandboxKind = (typeof sandboxKinds)[number];

/** The kinds of sandbox that a rollout may ask for; `auto` leaves it to the host. */
export const sandboxChoices = ['auto', ...sandboxKinds] as const;

export type SandboxChoice = (typeof sandboxChoices)[number];
