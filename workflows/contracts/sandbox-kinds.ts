/** The kinds of sandboxes. */
export const sandboxKinds = ['docker', 'local', 'kubernetes', 'e2b'] as const;

/**
 * The kinds on the host itself, in the order in which `auto` looks for one that is ready and supports the task. The others are
 * servers elsewhere, so they have to be asked for by name.
 */
export const kindsOfAuto = ['docker', 'local'] as const satisfies readonly SandboxKind[];

export type SandboxKind = (typeof sandboxKinds)[number];

/** The kinds of sandbox that a rollout may ask for; `auto` leaves it to the host. */
export const sandboxChoices = ['auto', ...sandboxKinds] as const;

export type SandboxChoice = (typeof sandboxChoices)[number];

const local: readonly SandboxChoice[] = ['auto', ...kindsOfAuto];

/**
 * Whether sandboxes of this kind are remote: in a cluster or at a provider, and not on the machine of the host that drives them.
 * They outlive that host, and another one may adopt them.
 */
export const isRemote = (choice: SandboxChoice): boolean => !local.includes(choice);
