/** One contract, three loops, two wires: what the model is told of its calls, and the answer, must agree byte for byte. */

import { test as always, expect } from 'bun:test'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { needs } from '../../support/needs.ts'
import { isDeep } from '../../support/tier.ts'
import { call, calls, type Loop, loops, others, type Play, type Played, play, say } from './stage.ts'

const test = always.if(needs('bwrap', 'jq', 'curl'))
/** Beside these tests a similar one runs in both tiers. */
const deep = isDeep ? test : () => {}

const [native, ...scripts] = loops
let plays = 0

/** Returns the native loop and, by turns, one of the scripts in the fast tier; the deep tier plays on all of these. */
function ofTier(on: readonly Loop[]): readonly Loop[] {
  plays += 1
  return isDeep ? on : [native, scripts[plays % 2]].flatMap((loop) => loop ?? [])
}

/** Plays it on several loops; each must tell the model the same and end the same way. @returns the first */
async function onAll(asked: Play, on = loops): Promise<Played> {
  const all = await Promise.all(ofTier(on).map(async (loop) => ({ loop, played: await play(loop, asked) })))
  const [first] = all
  if (!first) throw new Error('no loop')
  for (const { loop, played } of all) {
    const { code, stdout, transcript } = played
    expect({ loop, code, stdout, transcript }).toEqual({
      loop,
      code: first.played.code,
      stdout: first.played.stdout,
      transcript: first.played.transcript,
    })
    await accountedFor(played)
  }
  return first.played
}

/** Every call left a receipt, the chain holds, and each run says that it was a tool loop's. */
async function accountedFor({ home, receipts, transcript, trace }: Played): Promise<void> {
  expect(receipts.length).toBeGreaterThanOrEqual(transcript.length)
  if (receipts.length > 0) expect((await home.run(['receipt', 'verify'])).code).toBe(0)
  const runs: { channel: string }[] = JSON.parse((await home.run(['run', 'list', '--json'])).stdout)
  expect(new Set(runs.map(({ channel }) => channel)).size).toBeLessThanOrEqual(1)
  for (const { channel } of runs) expect(channel).toBe('tool-loop')
  const seen = (event: string) => trace.filter((line) => line.event === event).length
  const results = seen('tool_result') + seen('tool_failed') + seen('denied')
  expect([trace[0]?.event, seen('iteration') > 0, results]).toEqual(['user_input', true, transcript.length])
  expect(seen('tool_call')).toBeGreaterThanOrEqual(transcript.length)
}

test('a tool that is on no list is not permitted and never runs, whether it exists or not', async () => {
  const { code, stdout, transcript, receipts, home } = await onAll({
    staged: ['repeat', 'hidden'],
    replies: [calls(call('hidden', {}), call('invented', { a: 1 })), say('I may not.')],
  })
  expect([code, stdout]).toEqual([0, 'I may not.\n'])
  for (const { result } of transcript) expect(result).toStartWith('Tool not permitted: tool.unknown: unknown tool')
  expect(transcript.map(({ name }) => name)).toEqual(['hidden', 'invented'])
  expect(receipts.map(({ status }) => status)).toEqual(['denied', 'denied'])
  expect(existsSync(join(home.workspace, 'hidden-ran'))).toBe(false)
})

test('without a yes an executable is not permitted; a low-risk built-in tool is', async () => {
  const { code, transcript } = await onAll({
    replies: [calls(call('repeat', {}), call('file_read', { path: 'none' })), say('ok')],
    args: [],
  })
  expect(code).toBe(0)
  expect(transcript[0]?.result).toStartWith('Tool not permitted: approval.nobody: ')
  expect(transcript[1]?.result).toStartWith('Failed: "none" does not exist')
})

test('a path outside the workspace is not permitted', async () => {
  const { transcript } = await onAll({ replies: [calls(call('file_read', { path: '/etc/passwd' })), say('ok')] })
  expect(transcript[0]?.result).toStartWith('Tool not permitted: path.')
})

deep('an agent that is not there is not asked for', async () => {
  for (const loop of ofTier(loops)) {
    const { code, stdout, stderr, requests } = await play(loop, { replies: [say('no')], args: ['--agent', 'ghost'] })
    expect({ loop, code, stdout, requests }).toEqual({ loop, code: 1, stdout: '', requests: 0 })
    expect(stderr).toContain('no agent "ghost"; there are: default')
  }
})

test('arguments that are no JSON object are not permitted, and the model is told', async () => {
  for (const loop of (isDeep ? [...loops, ...others] : loops).filter(
    ({ backend, wire }) => backend !== 'llm' && wire === 'openai-compatible',
  )) {
    const made = ['not { json', '[1]'].map((args, at) => ({ id: `call_bad${at}`, name: 'repeat', args: [args] }))
    const { code, transcript, receipts } = await play(loop, { replies: [calls(...made), say('ok')] })
    expect(code).toBe(0)
    for (const { result } of transcript)
      expect(result).toStartWith('Tool not permitted: schema.malformed: repeat: the arguments are not a JSON object')
    expect([transcript.length, receipts.map(({ status }) => status)]).toEqual([2, ['denied', 'denied']])
  }
})

test('too many rounds end with 2 and no answer', async () => {
  const { code, stdout, transcript } = await onAll({ replies: [calls(call('repeat', { value: 1 }))], max: 2 })
  expect([code, stdout, transcript.length]).toEqual([2, '', 2])
})

test('a model that fails ends with 1 and no answer', async () => {
  const { code, stdout } = await onAll({ replies: [400] })
  expect([code, stdout]).toEqual([1, ''])
})

deep('a model that fails after a round ends with 1 as well', async () => {
  const { code, stdout, transcript } = await onAll({ replies: [calls(call('repeat', { value: 1 })), 400] })
  expect([code, stdout, transcript.length]).toEqual([1, '', 1])
})

test('a question without a call is answered', async () => {
  const { code, stdout, transcript, requests } = await onAll({ replies: [say('Hello.\nYou.')] })
  expect([code, stdout, transcript.length, requests]).toEqual([0, 'Hello.\nYou.\n', 0, 1])
})

test('a single call is made and its result answered from; words before it are no part of the answer', async () => {
  const { code, stdout, transcript } = await onAll({
    replies: [{ ...calls(call('repeat', { value: 'x' })), text: ['let me look … '] }, say('It said x.')],
  })
  expect([code, stdout]).toEqual([0, 'It said x.\n'])
  expect(transcript).toEqual([{ name: 'repeat', args: { value: 'x' }, result: '{"value":"x"}' }])
})

test('several rounds with nested, many-lined and long arguments arrive as they were sent', async () => {
  const nested = {
    value: { list: [1, 2.5, null, true, { deep: ['"', "'", '`$(id)`', '\\n', '\n\ttwo\r\n', '${HOME}', 'ü€😀', ' lead'] }], '': {} },
  }
  const long = { value: `${'line "of" \\text\\ $x\n'.repeat(4_000)}end` }
  const { code, stdout, transcript } = await onAll(
    {
      replies: [calls(call('repeat', nested)), calls(call('repeat', long)), calls(call('repeat', {})), say('done')],
      message: '-x "quoted" $(id)\nand `more` ü\\',
    },
    [...loops, ...others],
  )
  expect([code, stdout]).toEqual([0, 'done\n'])
  expect(transcript.map(({ args }) => args)).toEqual([nested, long, {}])
  expect(JSON.parse(transcript[0]?.result ?? '')).toEqual(nested)
  expect(transcript[1]?.result).toContain('bytes omitted')
})

test('parallel calls are all made, and their results come back in order; one that fails says why', async () => {
  const { code, transcript } = await onAll(
    {
      staged: ['repeat', 'fail'],
      tools: [{ name: 'repeat' }, { name: 'fail' }],
      replies: [calls(call('repeat', { value: 'first' }), call('fail', { value: 2 }), call('repeat', { value: 'third' })), say('done')],
    },
    [...loops, ...others],
  )
  expect(code).toBe(0)
  expect(transcript.map(({ result }) => result)).toEqual([
    '{"value":"first"}',
    'Failed: exit code 3: no luck today\nhalf a result\n',
    '{"value":"third"}',
  ])
})
