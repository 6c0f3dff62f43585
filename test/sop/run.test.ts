/** Runs of procedures through the real executable: the order, the gate, questions that wait, failures, inputs, and what a run keeps. */

import { describe, expect, test } from 'bun:test'
import { existsSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import type { Nest } from '../support/cli.ts'
import { needs } from '../support/needs.ts'
import { alone, home, scripted } from '../support/turns.ts'
import { dailyCheck, writeSop } from './daily-check.ts'

const full = ['--autonomy', 'full'] as const

const shown = async (at: Nest) => JSON.parse((await at.run(['sop', 'status', 'last', '--json'])).stdout)
const states = async (at: Nest) => {
  const { state, steps } = await shown(at)
  return [state, ...steps.map(({ step, state: ended }: { step: string; state: string }) => `${step} ${ended}`)]
}

/** Runs a procedure of these steps without anybody to ask. */
function runSteps(at: Nest, steps: string, args: readonly string[] = full, env: { readonly [name: string]: string } = {}) {
  writeSop(at, 'work', `name = "work"\n${steps}`)
  return at.run(['sop', 'run', 'work', ...args], { env, through: alone })
}

const tool = (id: string, name: string, args: string, more = '') =>
  `[[steps]]\nid = "${id}"\nkind = "tool"\ntool = "${name}"\nargs = ${args}\n${more}\n`
const write = (id: string, more = '') => tool(id, 'file_write', `{ path = "${id}.txt", content = "x" }`, more)
const missing = (id: string, more = '') => tool(id, 'file_read', '{ path = "no such file" }', more)
const agent = (id: string, prompt: string, more = '') => `[[steps]]\nid = "${id}"\nkind = "agent"\nprompt = "${prompt}"\n${more}\n`
const approval = (id: string, more = '') => `[[steps]]\nid = "${id}"\nkind = "approval"\nprompt = "May it?"\n${more}\n`

describe('what must not happen', () => {
  test('a denied approval ends the run: nothing after it has run, and the reason is kept', async () => {
    using at = home()
    expect((await runSteps(at, `${approval('ok')}${write('a')}`)).code).toBe(4)
    const { id } = await shown(at)
    expect((await at.run(['approvals', 'deny', `${id}/ok`, '--note', 'not on a Friday'])).code).toBe(0)
    const { code, stderr } = await at.run(['sop', 'resume', 'last', ...full], { through: alone })
    expect([code, existsSync(join(at.workspace, 'a.txt')), await states(at)]).toEqual([1, false, ['failed', 'ok failed']])
    expect(stderr).toContain('error: ok: denied by operator: not on a Friday')
  })

  test('a step that the gate refuses fails, and leaves a receipt', async () => {
    using at = home()
    const { code, stderr } = await runSteps(at, tool('a', 'file_write', '{ path = "/etc/x", content = "x" }'))
    expect([code, await states(at)]).toEqual([1, ['failed', 'a failed']])
    expect(stderr).toContain('error: a: ')
    expect((await at.run(['receipt', 'list', '--json'])).stdout).toContain('"denied"')
  })

  test('an unanswered approval lets nothing through, however often the run is resumed', async () => {
    using at = home()
    await runSteps(at, `${approval('ok')}${write('a')}`)
    for (const _ of [1, 2]) expect((await at.run(['sop', 'resume', 'last', ...full], { through: alone })).code).toBe(4)
    expect([existsSync(join(at.workspace, 'a.txt')), await states(at)]).toEqual([false, ['waiting', 'ok waiting']])
  })

  test('a cancelled run does not go on: its question is closed', async () => {
    using at = home()
    await runSteps(at, `${approval('ok')}${write('a')}`)
    const { id } = await shown(at)
    expect((await at.run(['sop', 'cancel', 'last'])).stdout).toBe(`cancelled: ${id} (work)\n`)
    expect((await at.run(['approvals', 'allow', `${id}/ok`])).stderr).toContain('was already denied by sop')
    expect((await at.run(['sop', 'resume', 'last'])).stderr).toBe(`error: ${id} has ended: cancelled\n`)
  })

  test('what a step returned is a value: a template in it is not filled, and it cannot become an argument of another kind', async () => {
    using at = home()
    at.file('in.txt', '{{ inputs.secret }} {{ steps.read.output }} $& "}')
    const inputs = '[inputs.secret]\ndefault = "s3cret"\n'
    const steps = `${tool('read', 'file_read', '{ path = "in.txt" }')}${tool('put', 'file_write', '{ path = "out.txt", content = "<{{ steps.read.output }}>" }')}`
    expect((await runSteps(at, `${inputs}${steps}`)).code).toBe(0)
    const out = readFileSync(join(at.workspace, 'out.txt'), 'utf8')
    expect(out).toContain('{{ inputs.secret }} {{ steps.read.output }} $& "}')
    expect(out).not.toContain('s3cret')
  })

  test('inputs that are missing or unknown are named before a run begins', async () => {
    using at = home()
    const needs = '[inputs.city]\ndescription = "Where"\n'
    expect((await runSteps(at, `${needs}${write('a')}`)).stderr).toBe('error: work needs the input city: --input city=…\n')
    const { code, stderr } = await at.run(['sop', 'run', 'work', '--input', 'cty=x'])
    expect([code, stderr]).toEqual([2, 'error: work has no input "cty"; did you mean "city"?\n'])
    expect((await at.run(['sop', 'status'])).stderr).toBe('no procedure has run yet\n')
  })
})

describe('the example of the seed', () => {
  test('stops at its approval, and goes on after a yes of another process', async () => {
    using at = home()
    at.file('a.txt', 'hello')
    writeSop(at, 'daily-check', dailyCheck)
    const { env } = scripted(at, [{ text: 'One file, a.txt.' }])
    const first = await at.run(['sop', 'run', 'daily-check', ...full], { env, through: alone })
    expect([first.code, await states(at)]).toEqual([4, ['waiting', 'list done', 'summarize done', 'approval waiting']])
    const { id } = await shown(at)
    expect(first.stderr).toContain(`braidclaw approvals allow ${id}/approval`)
    const listed = JSON.parse((await at.run(['approvals', 'list', '--json'])).stdout)
    expect(listed).toMatchObject([{ id: `${id}/approval`, summary: 'daily-check, approval: Continue to write report?', state: 'open' }])
    // It waits for days, not for the ten minutes of a call.
    expect(Math.round((listed[0].expires - listed[0].created) / 86_400_000)).toBe(30)
    expect((await at.run(['approvals', 'allow', `${id}/approval`])).code).toBe(0)
    expect((await at.run(['sop', 'resume', 'last', ...full], { through: alone })).code).toBe(0)
    expect(readFileSync(join(at.workspace, 'daily-check.txt'), 'utf8')).toBe('One file, a.txt.')
    const verified = await at.run(['receipt', 'verify', '--deep'])
    expect([verified.code, JSON.parse((await at.run(['receipt', 'list', '--json'])).stdout).length]).toEqual([0, 2])
  })

  test('asks at a terminal, and the model has read the list', async () => {
    using at = home()
    at.file('a.txt', 'hello')
    writeSop(at, 'daily-check', dailyCheck)
    const { env } = scripted(at, [{ text: 'One file.' }])
    const { code } = await at.terminal(['sop', 'run', 'daily-check', ...full], [['Continue to write report? [y/N]', 'y\n']], { env })
    expect([code, (await shown(at)).steps[2].why]).toEqual([0, 'allowed by terminal'])
    const { conversationId } = (await shown(at)).steps[1]
    expect((await at.run(['memory', 'show', conversationId])).stdout).toContain('a.txt (5 bytes)')
  })

  test('at the level supervised the last step asks too: a yes from elsewhere lets exactly this call run, once', async () => {
    using at = home()
    writeSop(at, 'daily-check', dailyCheck.replace(/\[\[steps\]\]\nid = "approval"[^[]*/, ''))
    const { env } = scripted(at, [{ text: 'Nothing.' }])
    expect((await at.run(['sop', 'run', 'daily-check'], { env, through: alone })).code).toBe(4)
    expect(existsSync(join(at.workspace, 'daily-check.txt'))).toBe(false)
    const [, , { question }] = (await shown(at)).steps
    expect((await at.run(['approvals', 'allow', question])).code).toBe(0)
    expect((await at.run(['sop', 'resume', 'last'], { through: alone })).code).toBe(0)
    expect(readFileSync(join(at.workspace, 'daily-check.txt'), 'utf8')).toBe('Nothing.')
  })
})

describe('steps', () => {
  test('after a failure: abort ends the run, continue goes on, and what needs the output fails', async () => {
    using at = home()
    expect((await runSteps(at, `${missing('a')}${write('b')}`)).code).toBe(1)
    expect(await states(at)).toEqual(['failed', 'a failed'])
    const goOn = 'on_failure = "continue"'
    const uses = tool('c', 'file_write', '{ path = "c.txt", content_from = "a" }', goOn)
    expect((await runSteps(at, `${missing('a', goOn)}${write('b')}${uses}`)).code).toBe(0)
    expect(await states(at)).toEqual(['done', 'a failed', 'b done', 'c failed'])
    expect((await shown(at)).steps[2].why).toBe('it needs the output of a, which failed')
  })

  test('when, retry and parallel', async () => {
    using at = home()
    const repair = write('repair', 'when = { step = "a", state = "failed" }')
    const never = write('never', 'when = { step = "b", contains = "no such text" }')
    const steps = `${missing('a', 'retry = 2\non_failure = "continue"')}${repair}${write('b', 'parallel = "p"')}${write('c', 'parallel = "p"')}${never}${write('last')}`
    expect((await runSteps(at, steps)).code).toBe(0)
    const ended = await states(at)
    expect([ended[0], ...ended.slice(1).toSorted()]).toEqual([
      'done',
      'a failed',
      'b done',
      'c done',
      'last done',
      'never skipped',
      'repair done',
    ])
    expect((await shown(at)).steps[0].attempt).toBe(3)
  })

  test('a command that runs too long fails at the time limit of its step', async () => {
    using at = home()
    const { stderr } = await runSteps(at, tool('a', 'shell', '{ command = "sleep 30" }', 'timeout = 1'), [...full, '--sandbox', 'none'])
    expect(stderr).toContain('error: a: it ran longer than 1 s')
  })

  test('inputs fill prompts, and the limits of the configuration hold for agent steps', async () => {
    using at = home()
    const steps = `[inputs.city]\ndefault = "Bern"\n${agent('a', 'Weather of {{ inputs.city }}?')}`
    const { env } = scripted(at, [{ text: 'Rain' }])
    const { code, stdout } = await runSteps(at, steps, ['--json', '--input', 'city=Basel'], env)
    const [step] = JSON.parse(stdout).steps
    expect([code, step.output]).toEqual([0, 'Rain'])
    expect((await at.run(['memory', 'show', step.conversationId])).stdout).toContain('Weather of Basel?')
    const broke = await runSteps(at, steps, full, { ...env, BRAIDCLAW_LIMITS_MAX_RUN_TOKENS: '5' })
    expect([broke.code, broke.stderr.includes('max_run_tokens')]).toEqual([6, true])
  })

  test.if(needs('bwrap'))('a tool that has vanished since the run began is refused by the gate', async () => {
    using at = home()
    const file = (await at.run(['tool', 'new', 'greet'])).stdout.trim()
    expect((await runSteps(at, `${approval('ok')}${tool('a', 'greet', '{ text = "x" }')}`)).code).toBe(4)
    rmSync(file)
    const { id } = await shown(at)
    await at.run(['approvals', 'allow', `${id}/ok`])
    const { code, stderr } = await at.run(['sop', 'resume', 'last', ...full], { through: alone })
    expect([code, stderr.includes('error: a: ')]).toEqual([1, true])
  })
})

test('a run keeps the version that it began with, and says that the file has changed', async () => {
  using at = home()
  await runSteps(at, `${approval('ok')}${write('a')}`)
  const { id } = await shown(at)
  writeSop(at, 'work', `name = "work"\n${approval('ok')}${write('b')}`)
  expect((await at.run(['sop', 'status', 'last'])).stderr).toContain(
    'the procedure work has changed since this run began; the run keeps its version',
  )
  await at.run(['approvals', 'allow', `${id}/ok`])
  const { code, stderr } = await at.run(['sop', 'resume', 'last', ...full], { through: alone })
  expect([code, stderr.includes('has changed')]).toEqual([0, true])
  expect([existsSync(join(at.workspace, 'a.txt')), existsSync(join(at.workspace, 'b.txt'))]).toEqual([true, false])
})

test.if(needs('bwrap'))('a dry run shows the changes of all steps, sends nothing and leaves the workspace as it is', async () => {
  using at = home()
  at.file('a.txt', 'old\n')
  const steps = [
    tool('edit', 'shell', '{ command = "sed -i s/old/new/ a.txt" }'),
    tool('read', 'file_read', '{ path = "a.txt" }'),
    approval('ok'),
    tool('put', 'file_write', '{ path = "b.txt", content_from = "read" }'),
    tool('post', 'http', '{ url = "https://example.com/", method = "POST", body = "x" }', 'on_failure = "continue"'),
  ].join('')
  const { code, stdout, stderr } = await runSteps(at, steps, [...full, '--dry-run', '--json'])
  expect([code, JSON.parse(stdout).steps.map(({ step, state }: { step: string; state: string }) => `${step} ${state}`)]).toEqual([
    0,
    ['edit done', 'read done', 'ok done', 'put done', 'post failed'],
  ])
  for (const line of ['-old', '+new', '+++ b/b.txt', 'a dry run sends nothing']) expect(stderr).toContain(line)
  expect([readFileSync(join(at.workspace, 'a.txt'), 'utf8'), existsSync(join(at.workspace, 'b.txt'))]).toEqual(['old\n', false])
  expect((await at.run(['changes', 'list', '--json'])).stdout).toBe('[]\n')
  expect((await runSteps(at, steps, [...full, '--sandbox', 'none', '--dry-run'])).code).toBe(2)
})
