import assert from 'node:assert/strict';
import { it } from 'node:test';
import { countedList } from '../../../workers/cli/text/output.ts';

it('lists counted things in lines as wide as the page, with what is said about each below it', () => {
  const long = 'a reason that has to be wrapped because it has far more words than fit one line of sixty';
  const items = [
    { count: 1340, what: long, about: [`got ${'x'.repeat(70)}; for example one`] },
    { count: 2, what: 'short', about: [] },
  ];
  assert.equal(
    countedList('refused, because', items, 40),
    `refused, because
  1340  a reason that has to be wrapped because it has far
        more words than fit one line of sixty
          got
          ${'x'.repeat(70)};
          for example one
     2  short`,
  );
});
