/** Notes the whole run's counts as one line of JSON: the runner prints its closing lines from them. */
export default async function* countTests(events) {
  const skipped = [];
  for await (const { type, data } of events) {
    if (type === 'test:pass' && (data.skip !== undefined || data.todo !== undefined)) skipped.push(data.name);
    // One summary for each file, then one without a file for all of them.
    if (type === 'test:summary' && data.file === undefined)
      yield `${JSON.stringify({ ...data.counts, skippedTitles: skipped })}\n`;
  }
}
