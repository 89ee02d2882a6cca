import { metricMeter } from '@temporalio/workflow';
import type { SettledGroup } from '../contracts/ended-group.ts';
import { counters, histograms } from '../contracts/metrics.ts';
import type { RunInput } from '../contracts/run.ts';

/** Adds a group that has its fate to the worker's metrics. The SDK does not count during a replay. */
export function countGroup({ settings }: RunInput, { fate, quarter, meanReward, rewards }: SettledGroup): void {
  const of = { agent: settings.agent, fate };
  metricMeter
    .createCounter('temper_groups_total', undefined, counters.groups)
    .add(1, { ...of, quarter: quarter ?? 'none' });
  if (meanReward === null) return;
  const { text } = histograms.scored_reward;
  const reward = metricMeter.createHistogram('temper_scored_reward', 'float', undefined, text).withTags(of);
  for (let rollout = 0; rollout < rewards; rollout += 1) reward.record(meanReward);
}
