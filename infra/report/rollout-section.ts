import { flagsOfRollout } from '../../workflows/algorithms/flags.ts';
import { isSolved } from '../../workflows/algorithms/reward.ts';
import { verdictText } from '../../workflows/algorithms/verdict-text.ts';
import type { StopReason } from '../../workflows/contracts/outcome.ts';
import type { Verdict } from '../../workflows/contracts/verdict.ts';
import { html, type Markup } from './markup.ts';
import type { MessageView, RolloutDetails } from './report-data.ts';
import { tokenSection } from './token-section.ts';

const maxMessageChars = 6_000;
const maxPatchLines = 400;
const maxLogChars = 6_000;

/** Renders one rollout turn by turn, with its diff and its verdict. All of its texts come from an agent. */
export function rolloutSection({ result, messages, tokens, segmentsLeft, patch, testLog }: RolloutDetails): Markup {
  const total = Object.values(result.stageSeconds).reduce((sum, seconds) => sum + (seconds ?? 0), 0);
  return html`<section id="rollout"><h2>One rollout, turn by turn</h2>
    <p class="lead"><code>${result.workflowId}</code>: <b>${result.agent}</b> on <b>${result.task}</b>,
    <span class="tag kind-${result.outcome}">${result.outcome}</span>${result.reward === null ? null : html` with reward <b>${result.reward}</b>`}, ${total.toFixed(1)} s in total${result.stop === null ? null : html`; the agent ${stopText(result.stop)}`}.</p>
    ${result.failure === null ? null : html`<p class="warning">${result.failure.type} at ${result.failure.stage ?? 'start'}: ${result.failure.message}</p>`}
    <div class="conversation">${messages.map(message)}</div>
    ${tokenSection(tokens, segmentsLeft)}
    ${patch === null ? null : html`<h3>Diff</h3>${diff(patch)}`}
    ${result.verdict === null ? null : verdict(result.verdict, testLog)}
    ${flags(result)}
  </section>`;
}

function stopText(stop: StopReason): string {
  if (stop === 'killed') return 'was killed';
  return ['submitted', 'exited', 'crashed'].includes(stop) ? stop : `was ended by ${stop}`;
}

function message({ role, text, turn }: MessageView): Markup {
  const versions = turn === null ? [] : [...new Set(turn.versions)];
  const facts =
    turn === null
      ? null
      : html`<small>turn ${turn.index + 1} · ${turn.tokens} tokens · ${turn.seconds.toFixed(2)} s${turn.model === undefined ? null : ` · ${turn.model}`}${versions.length === 0 ? null : ` · policy version ${versions.join(', ')}`}</small>`;
  return html`<article class="${turn === null ? 'given' : 'said'}"><header><b>${role}</b>${facts}</header><pre>${shorten(text, maxMessageChars)}</pre></article>`;
}

function diff(patch: string): Markup {
  if (patch.trim() === '') return html`<p>No changes.</p>`;
  const lines = patch.trimEnd().split('\n');
  const shown = lines.slice(0, maxPatchLines);
  return html`<pre class="diff">${shown.map((line) => html`<span class="${lineKind(line)}">${line === '' ? ' ' : line}</span>`)}${
    lines.length > shown.length ? html`<span class="meta">… ${lines.length - shown.length} more lines</span>` : null
  }</pre>`;
}

function lineKind(line: string): 'file' | 'hunk' | 'added' | 'removed' | 'same' {
  if (/^(diff |index |--- |\+\+\+ |new file|deleted file|similarity|rename )/.test(line)) return 'file';
  if (line.startsWith('@@')) return 'hunk';
  if (line.startsWith('+')) return 'added';
  return line.startsWith('-') ? 'removed' : 'same';
}

function verdict(verdict: Verdict, log: string | null): Markup {
  const { exitCode, resolution, kind, restored } = verdict;
  const decided = (resolution?.decidedBy ?? []).map(
    ({ list, id, status }) => html`<li><b>${status}</b> <code>${id}</code> of ${list}</li>`,
  );
  return html`<h3>Verdict</h3><p><span class="tag ${isSolved(verdict) ? 'good' : 'bad'}">${resolution?.status ?? kind}</span> ${verdictText(verdict)}${
    exitCode === null ? null : html` (exit code ${exitCode})`
  }.</p>${decided.length === 0 ? null : html`<ul>${decided}</ul>`}
    ${restored ? html`<p>Restored protected files (${restored.count}): ${restored.paths.join(', ')}</p>` : null}
    ${log === null ? null : html`<details><summary>test output</summary><pre>${shorten(log, maxLogChars)}</pre></details>`}`;
}

/** Lists suspected tricks, which deserve a look whatever the reward. */
function flags(result: RolloutDetails['result']): Markup | null {
  const found = flagsOfRollout(result);
  if (found.length === 0) return null;
  return html`<h3>Flags</h3><ul>${found.map(({ trick, evidence }) => html`<li><b>${trick}</b> <code>${evidence}</code></li>`)}</ul>`;
}

/** Shortens a text to its beginning and end, which are most informative. */
function shorten(text: string, max: number): string {
  if (text.length <= max) return text;
  const half = Math.floor(max / 2);
  return `${text.slice(0, half)}\n… ${text.length - 2 * half} characters omitted …\n${text.slice(-half)}`;
}
