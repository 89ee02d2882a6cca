import { showHidden } from '../../../../infra/report/hidden-characters.ts';
import { readRollout } from '../../../../infra/report/read-rollout.ts';
import type { RolloutDetails } from '../../../../infra/report/report-data.ts';
import { verdictText } from '../../../../workflows/algorithms/verdict-text.ts';
import { rolloutStatusQuery } from '../../../../workflows/contracts/messages.ts';
import { type RolloutResult, stages } from '../../../../workflows/contracts/rollout.ts';
import type { Verdict } from '../../../../workflows/contracts/verdict.ts';
import { type FoundWorkflow, isOpen } from '../../follow/find-workflow.ts';
import { workflowEnd } from '../../follow/workflow-failure.ts';
import type { StackClient } from '../../stack/stack-client.ts';
import { print, printJson, table } from '../../text/output.ts';
import { branchingText } from './branching.ts';
import { doubtLines } from './doubts.ts';

export async function showRollout(stack: StackClient, found: FoundWorkflow, json: boolean): Promise<void> {
  const { handle } = found;
  if (isOpen(found)) {
    const status = await handle.query(rolloutStatusQuery);
    if (json) return printJson({ id: handle.workflowId, ...status });
    const place = status.host === null ? '' : ` on ${status.host}`;
    const pause = status.paused ? ', paused' : '';
    return print(`${handle.workflowId}\nrunning${pause}: ${status.stage}${place}, attempt ${status.epoch}`);
  }
  let result: RolloutResult;
  try {
    result = (await handle.result()) as RolloutResult;
  } catch (error) {
    const end = workflowEnd(error);
    if (end === null) throw error;
    if (json) return printJson({ id: handle.workflowId, ...end });
    return print(`${handle.workflowId}\n${end.kind}: ${end.message}`);
  }
  const details = await readRollout(stack.store, result);
  if (json) printJson(details);
  else print(rolloutText(details));
}

function rolloutText({ result, messages, branching, patch, testLog }: RolloutDetails): string {
  const { outcome, reward, stop, failure, verdict, epochs } = result;
  const blocks = [
    [
      `${result.workflowId}`,
      `${result.agent} at ${result.task}: ${outcome}${reward === null ? '' : `, reward ${reward}`}${stop === null ? '' : `, agent ended by ${stop}`}${epochs === 1 ? '' : `, ${epochs} attempts`}`,
      ...(failure === null ? [] : [`${failure.type} at ${failure.stage ?? 'start'}: ${failure.message}`]),
    ].join('\n'),
    stageTable(result),
    ...(branching === null ? [] : [branchingText(branching)]),
    ...messages.map(({ role, text, turn }) => {
      const facts =
        turn === null
          ? ''
          : ` · turn ${turn.index + 1} · ${turn.tokens} tokens · ${turn.model ?? `policy ${[...new Set(turn.versions)].join(', ')}`}`;
      return `── ${role}${facts}\n${text.trimEnd()}`;
    }),
    ...(patch === null ? [] : [`── diff\n${patch.trim() === '' ? '(nothing changed)' : patch.trimEnd()}`]),
    ...(verdict === null
      ? []
      : [
          [
            `── verdict: ${verdictText(verdict)}`,
            ...decided(verdict),
            ...restoredText(verdict),
            ...doubtLines(result),
            (testLog ?? '').trimEnd(),
          ].join('\n'),
        ]),
  ];
  return showHidden(blocks.join('\n\n'));
}

/** The first tests that decided against it, each in a line. */
const decided = ({ resolution }: Verdict): readonly string[] =>
  (resolution?.decidedBy ?? []).map(({ list, id, status }) => `   ${status.padEnd(9)} ${list}  ${id}`);

/** What the agent did to the tests' own files and did not get. */
function restoredText({ restored }: Verdict): readonly string[] {
  if (restored === undefined || restored === null) return [];
  const more = restored.count - restored.paths.length;
  return [`put back, as protected: ${restored.paths.join(', ')}${more > 0 ? ` and ${more} more` : ''}`];
}

function stageTable({ stageSeconds }: RolloutResult): string {
  const rows = stages.flatMap((stage) => {
    const seconds = stageSeconds[stage];
    return seconds === undefined ? [] : [[stage, seconds.toFixed(2)]];
  });
  return table(['stage', 'seconds'], rows);
}
