/** Skips tests that need a missing program, by name; the runner reports them at the end of the run. */

const systemPath = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'

/**
 * For `test.if(needs('tmux'))`. CI skips nothing: there a missing program is a failure. Prints what is missing in a form that
 * scripts/test.ts reads.
 */
export function needs(...programs: readonly string[]): boolean {
  const missing = programs.filter((program) => Bun.which(program, { PATH: systemPath }) === null)
  if (missing.length === 0 || isCI()) return true
  console.log(`not tried here: needs ${missing.join(', ')}`)
  return false
}

/** For conditions other than programs: `test.if(given(isRoot, 'root'))`. */
export function given(holds: boolean, what: string): boolean {
  if (!holds) console.log(`not tried here: needs ${what}`)
  return holds
}

function isCI(): boolean {
  return Bun.env.CI === 'true' || Bun.env.CI === '1'
}
