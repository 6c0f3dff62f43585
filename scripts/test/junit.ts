/** Determines the result of one test file from Bun's JUnit report and the ending of its process. */

export type Counts = { readonly passed: number; readonly failed: number; readonly skipped: number }

export type Ending = { readonly exitCode: number | null; readonly signal: string | number | null; readonly timedOut: boolean }

export type FileResult = Counts & {
  /** Why the file as a whole failed, in addition to or instead of its tests. */ readonly trouble?: string
}

/**
 * A file whose process crashed, hung, exited early or failed outside any test counts as one more failure, whatever its tests reported: Bun
 * then writes no report, and exits 0 when a test calls `process.exit(0)`.
 */
export function fileResult(report: string | undefined, ending: Ending): FileResult {
  const counts = report === undefined ? undefined : countsOf(report)
  const trouble = troubleOf(counts, ending)
  const { passed, failed, skipped } = counts ?? { passed: 0, failed: 0, skipped: 0 }
  return trouble === undefined ? { passed, failed, skipped } : { passed, failed: failed + 1, skipped, trouble }
}

function troubleOf(counts: Counts | undefined, { exitCode, signal, timedOut }: Ending): string | undefined {
  if (timedOut) return 'ran out of time and was ended'
  if (signal !== null) return `died of ${signal}`
  if (counts === undefined) return `ended with exit code ${exitCode} before it reported`
  if (counts.passed + counts.failed + counts.skipped === 0) return 'holds no tests'
  return exitCode !== 0 && counts.failed === 0 ? `exit code ${exitCode}, though no test failed` : undefined
}

function countsOf(report: string): Counts | undefined {
  const totals = /<testsuites\s[^>]*>/.exec(report)?.[0]
  const [tests, failed, skipped] = ['tests', 'failures', 'skipped'].map((name) => number(totals, name))
  if (tests === undefined || failed === undefined || skipped === undefined) return undefined
  return { passed: tests - failed - skipped, failed, skipped }
}

function number(tag: string | undefined, attribute: string): number | undefined {
  const digits = new RegExp(`\\s${attribute}="(\\d+)"`).exec(tag ?? '')?.[1]
  return digits === undefined ? undefined : Number(digits)
}
