import { live, note, seconds } from '../../text/output.ts';
import type { RolloutRow } from './row.ts';

/** What a person sees while rollouts run: a line for each that ended, and a live line with the rest. */
export function createRolloutBoard(total: number) {
  const running = new Set<string>();
  const rewards: number[] = [];
  let ended = 0;
  const redraw = (): void => {
    const mean = rewards.length === 0 ? '' : ` · mean reward ${average(rewards).toFixed(2)}`;
    live(`${ended} of ${total} ended · ${running.size} running${mean}`);
  };
  return {
    started(workflowId: string): void {
      running.add(workflowId);
      redraw();
    },
    finished(row: RolloutRow): void {
      if (row.rollout !== null) running.delete(row.rollout);
      ended += 1;
      if (row.reward !== null) rewards.push(row.reward);
      note(`${String(ended).padStart(String(total).length)}/${total}  ${line(row)}`);
      redraw();
    },
    close(): void {
      live('');
    },
    /** What stays behind when the program leaves at once. */
    remains(ownStack: boolean): string {
      if (running.size === 0) return '';
      const ids = [...running].slice(0, 5).join(', ');
      const more = running.size > 5 ? ` and ${running.size - 5} more` : '';
      return ownStack
        ? `${running.size} rollouts were still running (${ids}${more}); their stack goes down with this program, and the reaper of the next one removes what they left`
        : `${running.size} rollouts are still running (${ids}${more}); end them with \`temper cancel ID\``;
    },
  };
}

function line({ task, outcome, reward, verdict, failure, stageSeconds }: RolloutRow): string {
  const total = Object.values(stageSeconds).reduce((sum, value) => sum + (value ?? 0), 0);
  const score = reward === null ? '' : ` ${reward}`;
  const said = verdict === null || reward === 1 ? '' : `  ${verdict}`;
  const why = failure === null ? said : `  ${failure.type}: ${failure.message}`;
  return `${outcome ?? 'no outcome'}${score}  ${task}${total === 0 ? '' : `  ${seconds(total)}`}${why}`;
}

export const average = (values: readonly number[]): number =>
  values.reduce((sum, value) => sum + value, 0) / values.length;
