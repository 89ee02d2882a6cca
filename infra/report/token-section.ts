import { html, type Markup } from './markup.ts';
import type { TokenFacts, TokenView } from './report-data.ts';

/** Renders the tokens of the segments, with their probabilities, and marks those that are trained. */
export function tokenSection(views: readonly TokenView[], segmentsLeft: number): Markup | null {
  if (views.length === 0) return null;
  return html`<h3>Token by token</h3>
    <p class="key"><span class="tokens"><span class="given">given</span> <span class="masked">sampled, not trained here</span>
    ${shades.map(({ name, label }) => html`<span class="${name}">${label}</span> `)}</span>trained, by sampling probability</p>
    ${views.map(view)}${segmentsLeft === 0 ? null : html`<p>… ${segmentsLeft} more segments</p>`}`;
}

const shades = [
  { from: 0.9, name: 'p4', label: '≥ 0.9' },
  { from: 0.5, name: 'p3', label: '≥ 0.5' },
  { from: 0.2, name: 'p2', label: '≥ 0.2' },
  { from: 0.05, name: 'p1', label: '≥ 0.05' },
  { from: 0, name: 'p0', label: 'less' },
] as const;

function view({ segment, kind, length, trained, shared, tokens, left }: TokenView): Markup {
  return html`<details><summary>segment ${segment + 1}, ${kind}: ${length} tokens, ${trained} trained</summary>
    <pre class="tokens">${
      shared === 0
        ? null
        : html`<span class="cut">… ${shared} tokens shared with an earlier segment …</span>
`
    }${joinGiven(tokens).map(token)}${
      left === 0
        ? null
        : html`<span class="cut">
… ${left} more tokens</span>`
    }</pre></details>`;
}

/** Joins adjacent tokens without a probability into one element, since a prompt has thousands of them. */
function joinGiven(tokens: readonly TokenFacts[]): TokenFacts[] {
  const joined: TokenFacts[] = [];
  for (const token of tokens) {
    const last = joined.at(-1);
    if (token.is === 'given' && last?.is === 'given')
      joined[joined.length - 1] = { ...last, text: last.text + token.text };
    else joined.push(token);
  }
  return joined;
}

function token({ text, is, logprob }: TokenFacts): Markup {
  if (is === 'skipped') return html`<span class="cut">${text}</span>`;
  if (logprob === null) return html`<span class="given">${text}</span>`;
  const probability = Math.exp(logprob);
  const shade = shades.find(({ from }) => probability >= from)?.name ?? 'p0';
  return html`<span class="${is === 'masked' ? 'masked' : shade}" title="p ${probability.toFixed(3)}">${text}</span>`;
}
