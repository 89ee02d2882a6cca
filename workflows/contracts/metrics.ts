/** The Prometheus counters of the control worker, `temper_<name>_total`, each with what it counts. */
export const counters = {
  groups: 'groups of training runs that have a fate',
  rollouts: 'rollouts that ended',
  adoptions: 'sandboxes that another host adopted from a lost one',
  turns: 'model calls',
  sampled_tokens: 'tokens that the model sampled',
  prompt_tokens: 'tokens that were sent to the model',
  retried_requests: 'retried requests answered from the journal',
  engine_failures: 'turns that ended because the engine was unreachable',
  gateway_failures: 'turns that the gateway failed to record, and gateway outages that ended a session',
  forks: 'requests that do not provably extend a branch',
  masked_turns: 'turns that are not trained',
  resumed_aborts: 'aborted turns that were resumed',
  unclear_branches: 'branches whose kind could not be recognized',
  dropped_branches: 'branches that the rule or its limits left out',
  dropped_tokens: 'sampled tokens that no segment trains',
  tool_calls: 'sampled tool calls, by their status',
  realigned_replies: 'replies that an agent sent back in another form',
} as const satisfies Record<string, string>;

export type Counter = keyof typeof counters;

/** The Prometheus histograms of the control worker, `temper_<name>`, each with what it records and its buckets. */
export const histograms = {
  scored_reward: {
    text: 'the mean reward of a group that has a fate, once for each of its scored rollouts',
    buckets: [0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1],
  },
} as const satisfies Record<string, { readonly text: string; readonly buckets: readonly number[] }>;

/** The Prometheus gauges of the host worker, `temper_<name>`, each with what it shows. */
export const gauges = {
  host_sandboxes_failing: '1 while the host takes no new work because its sandboxes of a `kind` fail',
  host_holds_back: '1 while the host takes no rollouts because too little of the `resource` is free',
  lane_width: 'the number of stages that the `lane` takes at once; it falls while the host is overloaded',
  lane_running: 'the number of stages that run in the `lane`',
} as const satisfies Record<string, string>;
