/** Runs a check: what decides that work is done. A check changes nothing, and whatever keeps it from running is its result. */

import { errorText } from '../../kit/errors.ts'
import { visibleLines } from '../../kit/text.ts'
import { type Attempt, type CheckContext, type CheckResult, type CheckSpec, notRun } from './contract.ts'
import { freezeChecks, whyChanged } from './frozen-checks.ts'
import { runCommand } from './run-command.ts'

/** The most bytes of evidence. */
const evidenceBytes = 8_192

/** Runs all checks, the cheapest first. A judge is asked only when everything else has passed. Never rejects. */
export async function runChecks(
  specs: readonly CheckSpec[],
  on: CheckContext,
  ended?: (result: CheckResult) => void,
): Promise<readonly CheckResult[]> {
  const results: CheckResult[] = []
  for (const spec of specs.toSorted((a, b) => a.tier - b.tier)) {
    const isVain = spec.tier === 3 && results.some(({ pass, tier }) => !pass && tier < 3)
    const { name, tier } = spec
    const evidence = results.map((each) => `${each.name}: ${each.pass ? 'pass' : 'fail'}\n${each.evidence}`).join('\n\n')
    const result = isVain
      ? { name, tier, ms: 0, ...notRun('another check failed') }
      : await runCheck(spec, { ...on, work: { evidence, ...on.work } })
    results.push(result)
    ended?.(result)
  }
  return results
}

/** Never rejects. */
export async function runCheck(spec: CheckSpec, on: CheckContext): Promise<CheckResult> {
  const { name, tier } = spec
  const began = performance.now()
  const { notes, flaky, last } = await attempts(spec, on)
  const { pass, exit, notRun, files } = last
  const evidence = bounded([...notes, last.evidence].join('\n'))
  const ms = Math.round(performance.now() - began)
  return { name, tier, pass, exit, evidence, ms, ...(flaky && { flaky }), ...(notRun && { notRun }), ...(files && { files }) }
}

/** Ends as soon as the runs that are left cannot change the result. */
async function attempts(spec: CheckSpec, on: CheckContext) {
  const { runs = 1, pass: needed = runs } = spec
  let [passed, failed] = [0, 0]
  let kept: Attempt | undefined
  do {
    const attempt = await attemptOf(spec, on)
    if (attempt.notRun) return { notes: [], flaky: false, last: attempt }
    if (attempt.pass) passed += 1
    else failed += 1
    // The evidence of a failure says more than that of a run that passed.
    if (!attempt.pass || kept === undefined) kept = attempt
  } while (passed < needed && failed <= runs - needed)
  const flaky = passed > 0 && failed > 0
  const notes = runs === 1 ? [] : [`${passed} of ${passed + failed} runs passed, ${needed} of at most ${runs} must pass`]
  return { notes, flaky, last: { ...kept, pass: passed >= needed } }
}

async function attemptOf(spec: CheckSpec, on: CheckContext): Promise<Attempt> {
  try {
    const before = on.frozen?.find(({ name }) => name === spec.name)
    const [now] = before ? freezeChecks([spec], on.setup.config.workspaceDir) : []
    const changed = before && now && whyChanged(before, now)
    if (changed !== undefined) return notRun(changed)
    if (spec.command !== undefined) return await runCommand({ ...spec, command: spec.command }, on)
    if (spec.stories !== undefined)
      return await (await import('./stories/run-stories.ts')).runStories({ ...spec, stories: spec.stories }, on)
    if (spec.criteria !== undefined) return await (await import('./ask-judge.ts')).askJudge({ ...spec, criteria: spec.criteria }, on)
    return notRun(`the check ${JSON.stringify(spec.name)} has nothing to run`)
  } catch (error) {
    return notRun(errorText(error))
  }
}

/** Matches what test runners say about time, which would make equal outcomes differ. */
const times = /(\b(?:in|took|time:?|duration(?:_ms)?:?)\s+|[[(])\d+(?:\.\d+)?(?=\s?(?:ms|µs|s|secs?|seconds?)\b)|(\bduration_ms:? )[\d.]+/gi

/** Keeps the end, where programs sum up, and says what is left out. */
function bounded(text: string): string {
  const bytes = new TextEncoder().encode(visibleLines(text.trim()).replace(times, '$1$2…'))
  if (bytes.length <= evidenceBytes) return new TextDecoder().decode(bytes)
  const tail = new TextDecoder().decode(bytes.subarray(bytes.length - evidenceBytes + 80)).replace(/^\uFFFD+/, '')
  return `[… the first ${bytes.length - Buffer.byteLength(tail)} bytes are left out …]\n${tail}`
}
