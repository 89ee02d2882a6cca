/** Writes the counts of the whole run and the duration of each file as one line of JSON, for the closing lines of the runner. */
export default async function* countTests(events) {
  const skippedTitles = [];
  const durations = [];
  for await (const { type, data } of events) {
    if (type === 'test:pass' && (data.skip !== undefined || data.todo !== undefined)) skippedTitles.push(data.name);
    if (type !== 'test:summary') continue;
    // One summary comes for each file, and then one without a file for all of them.
    if (data.file !== undefined) durations.push({ file: data.file, ms: data.duration_ms });
    else yield `${JSON.stringify({ ...data.counts, skippedTitles, durations })}\n`;
  }
}
