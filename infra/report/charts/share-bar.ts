import { html, type Markup } from '../markup.ts';

/** Draws a bar divided by kind, with the counts of all kinds below it, including those that are zero. */
export function shareBar(label: string, counts: Readonly<Record<string, number>>): Markup {
  const kinds = Object.entries(counts);
  const total = kinds.reduce((sum, [, count]) => sum + count, 0);
  return html`<figure class="share"><figcaption>${label} <b>${total}</b></figcaption>
    <div class="track" role="img" aria-label="${label}">${kinds
      .filter(([, count]) => count > 0)
      .map(
        ([kind, count]) =>
          html`<span class="kind-${kind}" style="flex-grow:${count}" title="${kind}: ${count}"></span>`,
      )}</div>
    <ul>${kinds.map(
      ([kind, count]) =>
        html`<li class="${count === 0 ? 'zero' : ''}"><i class="kind-${kind}"></i>${kind} <b>${count}</b> <small>${percent(count, total)}</small></li>`,
    )}</ul></figure>`;
}

function percent(count: number, total: number): string {
  if (total === 0 || count === 0) return '';
  const share = (100 * count) / total;
  return share < 1 ? '< 1 %' : `${Math.round(share)} %`;
}
