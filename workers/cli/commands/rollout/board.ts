import { meanOf } from '../../../../workflows/algorithms/mean.ts';
import { type RepeatedWork, repeatedText } from '../../follow/repeated-work.ts';
import { live, note, seconds } from '../../text/output.ts';
import type { RolloutRow } from './rollout-row.ts';

/** Creates the progress display of running rollouts: a line for each that has ended, and a live line about the rest. */
export function createRolloutBoard(total: number) {
  const running = new Set<string>();
  const repeated = new Map<string, RepeatedWork>();
  const rewards: number[] = [];
  let ended = 0;
  const redraw = (): void => {
    const mean = rewards.length === 0 ? '' : ` · mean reward ${meanOf(rewards).toFixed(2)}`;
    const again = repeated.size === 0 ? '' : `, ${repeated.size} of them after a failure`;
    live(`${ended} of ${total} ended · ${running.size} running${again}${mean}`);
  };
  return {
    started(workflowId: string): void {
      running.add(workflowId);
      redraw();
    },
    finished(row: RolloutRow): void {
      if (row.rollout !== null) {
        running.delete(row.rollout);
        repeated.delete(row.rollout);
      }
      ended += 1;
      if (row.reward !== null) rewards.push(row.reward);
      note(`${String(ended).padStart(String(total).length)}/${total}  ${line(row)}`);
      redraw();
    },
    /** Says that a rollout does some of its work again, and why. */
    repeats(workflowId: string, work: RepeatedWork): void {
      repeated.set(workflowId, work);
      note(`${' '.repeat(2 * String(total).length + 3)}${workflowId}: ${repeatedText(work)}`);
      redraw();
    },
    running: (): readonly string[] => [...running],
    close(): void {
      live('');
    },
    /** Says what is left behind when the program exits at once. */
    remains(ownStack: boolean): string {
      if (running.size === 0) return '';
      const ids = [...running].slice(0, 5).join(', ');
      const more = running.size > 5 ? ` and ${running.size - 5} more` : '';
      return ownStack
        ? `${running.size} rollouts were still running (${ids}${more}); their stack stops with this program, and the next stack on this home removes their sandboxes`
        : `${running.size} rollouts are still running (${ids}${more}); cancel them with \`temper cancel ID\``;
    },
  };
}

function line({ task, outcome, reward, verdict, failure, stageSeconds }: RolloutRow): string {
  const total = Object.values(stageSeconds).reduce((sum, value) => sum + (value ?? 0), 0);
  const score = reward === null ? '' : ` ${reward}`;
  const graded = verdict === null || reward === 1 ? '' : `  ${verdict}`;
  const why = failure === null ? graded : `  ${failure.type}: ${failure.message}`;
  return `${outcome ?? 'no outcome'}${score}  ${task}${total === 0 ? '' : `  ${seconds(total)}`}${why}`;
}
