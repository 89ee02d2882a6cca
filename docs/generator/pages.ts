import { settings } from '../../infra/settings/environment.ts';
import { failureKinds } from '../../workflows/contracts/failures.ts';
import { counters, gauges, histograms } from '../../workflows/contracts/metrics.ts';
import { searchAttributeDescriptions, searchAttributes } from '../../workflows/contracts/search-attributes.ts';
import { code, entry, join, paragraph, table } from './markdown.ts';

/** Returns the page of every environment variable. */
export function settingsPage(): string {
  return join(
    '# Settings',
    paragraph(
      'Environment variables of a stack, read once at the start of a process. What belongs to a run is its [workflow input](workflow-inputs.md) instead. Where Temporal is comes from its own variables; see [operate](../guides/operate.md#another-temporal-server).',
    ),
    settings
      .map(({ name, description, default: fallback }) => entry(name, [`default: ${fallback}`], description))
      .join('\n'),
  );
}

/** Returns the page of every failure type. */
export function failuresPage(): string {
  const types = Object.entries(failureKinds);
  return join(
    '# Failures',
    paragraph(
      'A failure is attributed once, at the boundary where it happened, and travels as data: `type`, `message` and `stage`. It is in the result of a rollout (`failure`), in its memo and current details in the Temporal UI, and in `temper show`.',
    ),
    '## Whose failure it is',
    paragraph(
      'What the policy does to itself is not a failure but a score: a wrong patch, a crash of its process, memory, processes or disk used up inside the sandbox, killing everything that it can reach, tests that it makes hang, a tree for which git takes minutes. `infra` needs evidence from outside the sandbox. It is retried at its stage, then ends the rollout, and is never a reward of 0. The baseline of a group knows only scored rollouts.',
    ),
    paragraph(
      'An agent that did not submit is not scored if one of its turns failed for a reason that the gateway has seen: the engine was unreachable for longer than `TEMPER_ENGINE_HOLD`; the turn was cancelled (the deadline of the agent, or a client that left) while the engine was unreachable, having sampled nothing since the engine failed last; or the gateway could not record the turn. A request that was answered later does not count, nor one whose engine was merely slow.',
    ),
    paragraph(
      'Such an agent is also not scored if all gateways of its stack were gone for as long as a request is retried (60 seconds) and no turn began after that. The next gateway measures the gap; a gateway that dies within 5 seconds of each start does not end it. The gateway cannot know whether the agent asked for anything meanwhile, and assumes that it did. An agent that did submit is not scored only if such a failure or gap was the end of its session (`cutOff`), because some agents exit successfully when they lose their model.',
    ),
    '## Types',
    paragraph(
      '"Retried" means that the same stage is retried within the limits of `workflows/activity-options.ts`, where each timeout and retry policy has its reason. "In a fresh sandbox" means that the rollout raises its epoch, which fences off late results, and starts again, at most three times in all.',
    ),
    types
      .map(([type, kind]) =>
        entry(type, [outcomeOf(kind.outcome), retryOf(type, kind.retryable)], `${kind.description} ${kind.remedy}`),
      )
      .join('\n'),
    paragraph(
      'How agents end, what becomes of groups and the outcomes of rollouts are in the [glossary](../glossary.md). Every group has one fate, every rollout one outcome, and the sums match in `temper status`, in the report and by query. A run whose last rollouts are nearly all `infra`, or all `invalid-task`, or that makes no step because its groups are too stale, pauses itself and says why; fix the cause, then run `temper resume`.',
    ),
  );
}

const freshSandbox: readonly string[] = [
  'HostLost',
  'SandboxLost',
  'SandboxConflict',

  'AgentStateUnknown',
];

const outcomeOf = (outcome: string): string =>
  outcome === 'refused' ? 'refused; a rollout: `invalid-task`' : code(outcome);

function retryOf(type: string, retryable: boolean): string {
  if (retryable) return 'retried';
  return freshSandbox.includes(type) ? 'in a fresh sandbox' : 'not retried';
}

/** Returns the page of the Prometheus metrics and the search attributes. */
export function metricsPage(): string {
  return join(
    '# Metrics and search attributes',
    '## Prometheus',
    paragraph(
      "With `TEMPER_METRICS_PORT=9464` the control worker serves its metrics at `http://127.0.0.1:9464/metrics`, the host worker at 9465 and the trainer worker at 9466. [`TEMPER_METRICS_LISTEN`](../guides/operate.md#metrics) serves them to a network, by TLS and with a token. All have the metrics of Temporal's SDK (`temporal_…`). The control worker adds the counters below: `temper_groups_total` when a group of a run has its fate, the others when a rollout ends.",
    ),
    table(
      ['Counter', 'Counts'],
      Object.entries(counters).map(([name, text]) => [code(`temper_${name}_total`), text]),
    ),
    paragraph(
      '`temper_groups_total` has the labels `agent`, `fate` and `quarter`: the quarter of its duration among the last groups of its run, from 1 for the fastest to 4, or `none` while less than eight have ended. The others have the labels `agent` and `purpose`, `temper_rollouts_total` also `outcome` and `failure` (its type, or `none`), `temper_realigned_replies_total` also `difference`, `temper_tool_calls_total` also `status` (`ok`, or what was wrong with the call). No label names a run or a task, so that their number is bounded. A counter that was never above zero is absent. Counters start at zero with the process, and a replayed workflow counts nothing again: for exact sums use `temper status` and the results.',
    ),
    paragraph('The control worker adds this histogram, with the labels `agent` and `fate`:'),
    table(
      ['Histogram', 'Records'],
      Object.entries(histograms).map(([name, { text }]) => [code(`temper_${name}`), text]),
    ),
    paragraph(
      'Its sum divided by its count is the mean reward over all scored rollouts, and with `fate="trained"` that over the trained ones; [queries](../design/staleness.md#how-to-see-it) show both.',
    ),
    paragraph('The host worker adds these gauges:'),
    table(
      ['Gauge', 'Shows'],
      Object.entries(gauges).map(([name, text]) => [code(`temper_${name}`), text]),
    ),
    '## Search attributes',
    table(
      ['Attribute', 'Kind', 'Meaning'],
      Object.entries(searchAttributes).map(([key, { name, type }]) => [
        code(name),
        type[0] + type.slice(1).toLowerCase(),
        searchAttributeDescriptions[key as keyof typeof searchAttributes],
      ]),
    ),
    paragraph(
      'Workflows set them themselves, so a workflow that was started by `temporal`, `tctl` or the UI has them, too. `temper up` and `temper doctor --register` register them at the server.',
    ),
    '## Metrics of a step',
    paragraph(
      'The result of a `trainingStep` and the records of a run have, beside what the trainer reports: `maxLogprobGap` (the largest difference between the logprobs of engine and trainer when the version was published), `zeroVarianceShare`, and the deviations of the traces of the batch, summed: `trace:forks`, `trace:maskedTurns`, `trace:aborts`, `trace:unclear`, `trace:dropped`, `trace:droppedTokens`, `trace:echoes`, `trace:retries`. Two more are shares of all sampled tool calls: `trace:faultyCallShare` (all that were not well-formed calls of an offered tool) and `trace:repairedCallShare` (those among them whose syntax was repaired). `trace:noCallTurnShare` is the share of the turns of main conversations in which no call was sampled, not even a faulty one: also the last turn of an agent that ends by a text, and all turns of one whose commands are text. Beside its metrics a result has `meanReward` (over all scored rollouts of its groups), `scoredReward` (with those of the groups that ended untrained since the step before) and `equalGroups` (its groups with all rewards 0, all 1, or equal in between).',
    ),
  );
}
