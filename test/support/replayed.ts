/** Says what a replay prints of what a run printed. */

/**
 * Removes what only the run itself knew from lines of stream-json: partial texts, and the members of `done` that say what the turn took.
 */
export function asReplayed(stdout: string): string {
  const lines = stdout.split('\n').filter((line) => !line.includes('"isPartial":true'))
  return lines.map((line) => (line.startsWith('{"type":"done"') ? withoutSpent(line) : line)).join('\n')
}

function withoutSpent(line: string): string {
  const { usage: _, model: __, provider: ___, durationMs: ____, ...done } = JSON.parse(line)
  return JSON.stringify(done)
}
