/** Programs that a test cannot do without: where one is missing the test is left out, by name, and the runner says so at the end of the run. */

const systemPath = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'

/**
 * For `test.if(needs('tmux'))`. In CI nothing is left out: there a missing program is a failure. What is missing is printed in a form that
 * scripts/test.ts reads.
 */
export function needs(...programs: readonly string[]): boolean {
  const missing = programs.filter((program) => Bun.which(program, { PATH: systemPath }) === null)
  if (missing.length === 0 || isCI()) return true
  console.log(`not tried here: needs ${missing.join(', ')}`)
  return false
}

/** For what no program can give: `test.if(given(isRoot, 'root'))`. */
export function given(holds: boolean, what: string): boolean {
  if (!holds) console.log(`not tried here: needs ${what}`)
  return holds
}

function isCI(): boolean {
  return Bun.env.CI === 'true' || Bun.env.CI === '1'
}
