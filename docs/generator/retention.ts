import { allRoots, categories } from '../../infra/retention/table.ts';
import { entry, join, paragraph, plain, sentence, table } from './markdown.ts';

/** Returns the page of what a stack keeps, and of what refers to its blobs. */
export function retentionPage(): string {
  return join(
    '# Retention',
    paragraph(
      'A pass of retention goes through these categories in this order, each hour in the control worker and at once with `temper gc`. The [guide](../guides/retention.md) says how it works.',
    ),
    '## Categories',
    categories.map(({ name, keeps }) => entry(name, [], `Kept: ${keeps}`)).join('\n'),
    paragraph(
      'The images that temper pulled or built are removed by the [reaper](../guides/operate.md#the-reaper) beyond `TEMPER_IMAGE_DISK_GB`, and the leftovers of builds after an hour.',
    ),
    '## References to blobs',
    paragraph('A blob stays as long as one of these refers to it, directly or through a list or a report:'),
    table(
      ['Source', 'Written by'],
      allRoots.map(({ name, owner }) => [name, plain(sentence(owner)).replace(/\.$/, '')]),
    ),
  );
}
