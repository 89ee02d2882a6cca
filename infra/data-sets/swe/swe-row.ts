import { z } from 'zod';
import { isRecord } from '../../is-record.ts';
import { optional, required, textList, textsOrText } from '../rows/row.ts';

/** The fields that rows of SWE-bench and of its successors share. */
export const sweFields = {
  instance_id: required('the name of the task'),
  repo: required('a repository, such as "owner/name"'),
  base_commit: required('a commit'),
  problem_statement: required('the text of the issue'),
  patch: optional('a patch'),
  test_patch: z.string({ error: 'expected a patch' }),
  FAIL_TO_PASS: textList('test name').refine((tests) => tests.length > 0, { error: 'expected at least one test name' }),
  PASS_TO_PASS: textList('test name'),
  /** The image is named by the first of these fields that is present. */
  image: optional('an image'),
  image_name: optional('an image'),
  docker_image: optional('an image'),
  workdir: optional('a directory'),
  /** A field of temper's own, with the meaning of `setup` in task.toml. */
  setup: textsOrText('shell command'),
  /** Fields of newer rows that describe how the tests run. */
  eval_script: optional('a script'),
  test_cmd: textsOrText('shell command'),
  log_parser: optional('the name of a log parser'),
};

/** The image that a row names, or null. */
export const imageField = (row: {
  readonly image: string | null;
  readonly image_name: string | null;
  readonly docker_image: string | null;
}): string | null => row.image ?? row.image_name ?? row.docker_image;

/** The id of a row, which need not be valid, or null when it has none. */
export const instanceId = (value: unknown): string | null =>
  isRecord(value) && typeof value.instance_id === 'string' && value.instance_id !== '' ? value.instance_id : null;
