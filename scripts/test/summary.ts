/** Describes the results of a run for a person; the last line is `N passed, N failed`. */

import { keyOf } from './entries.ts'
import type { Done } from './run-entry.ts'

export function describeEntry(done: Done): string {
  const { passed, failed, ms, processorMs, trouble, output } = done
  const line = `${failed === 0 ? 'ok  ' : 'FAIL'} ${keyOf(done)}  ${passed} passed${failed === 0 ? '' : `, ${failed} failed`}  ${ms} ms, processor ${processorMs} ms`
  const lines = output.split('\n').filter((text) => !text.startsWith('(pass)'))
  return [line, ...(trouble === undefined ? [] : [`     ${done.file} ${trouble}`]), ...lines].join('\n').trimEnd()
}

export type Totals = { readonly done: readonly Done[]; readonly ms: number; readonly note: string | undefined }

/** Returns the lines after the last file, in their order. */
export function summary({ done, ms, note }: Totals): readonly string[] {
  const sum = (key: 'passed' | 'failed' | 'skipped' | 'processorMs'): number => done.reduce((total, one) => total + one[key], 0)
  const [passed, failed, skipped] = [sum('passed'), sum('failed'), sum('skipped')]
  const broken = done.filter((one) => one.failed > 0)
  return [
    ...(done.length === 0 ? ['\nno test file matches'] : []),
    ...leftOut(done),
    ...(broken.length === 0 ? [] : [`\nfailed:\n${broken.map((one) => `  ${keyOf(one)}`).join('\n')}`]),
    `\n${done.length} files in ${minutes(ms)}, ${minutes(sum('processorMs'))} of processor time${note === undefined ? '' : `; ${note}`}`,
    `${passed} passed, ${failed} failed${skipped === 0 ? '' : `, ${skipped} skipped`}`,
  ]
}

/** Returns the exit code: 0 only when something passed and nothing failed. */
export function exitCodeOf(done: readonly Done[]): number {
  return done.some(({ failed }) => failed > 0) || !done.some(({ passed }) => passed > 0) ? 1 : 0
}

function minutes(ms: number): string {
  return `${Math.floor(ms / 60_000)} min ${Math.round((ms % 60_000) / 1_000)} s`
}

/** Lists skipped tests by name with the reason, so that a skipped test does not look like a passed one. */
function leftOut(done: readonly Done[]): readonly string[] {
  const files = done.filter((one) => one.leftOut.length > 0).sort((a, b) => (a.file < b.file ? -1 : 1))
  if (files.length === 0) return []
  const missing = [...new Set(files.flatMap(({ needs }) => needs.flatMap((line) => line.split(', '))))].sort()
  const why =
    missing.length === 0 ? '' : `, because here is no ${missing.join(', no ')}; "sudo scripts/setup-debian --tests" installs the programs`
  const tests = files.flatMap(({ file, leftOut: names }) => names.map((name) => `  ${file}: ${name}`))
  return [`\nskipped${why}:`, ...tests]
}
