/**
 * The agent loop of seed 003 as a behavioral program, both modes, with the names and the order of its listing. What the listing gets wrong is
 * corrected, and each correction has a test.
 */

import { expect, test } from 'bun:test'
import { type PublicTrigger, type SnapshotMessage, useBehavioral } from '../../src/library/behavioral.ts'

type Call = { readonly toolName: string; readonly command: string }
type Thought = { readonly call?: Call; readonly text?: string }
type Outcome = { readonly output?: string; readonly error?: string; readonly final?: boolean }
type Shell = { readonly stdout: string; readonly stderr: string; readonly code: number }
type Message = { readonly role: string; readonly content: string }

type AgentEvents = {
  prompt: { readonly text: string }
  approval_response: { readonly allow: boolean }
  cancel: undefined
  setMode: { readonly newMode: 'structured' | 'wiggum'; readonly maxIter?: number }
  think: undefined
  thought: Thought
  act: Call
  answer: string
  acted: Outcome
  denied: string
  observe: undefined
  next: undefined
  failed: string
  restart: undefined
  approval_gate: Call
  enterWiggum: undefined
  exitWiggum: undefined
  wiggum_generate: undefined
  wiggum_generated: Call
  wiggum_execute: Call
  wiggum_executed: Shell
  wiggum_check: undefined
  wiggum_checked: { readonly done: boolean }
  wiggum_complete: undefined
}

type Output =
  | { readonly type: 'approval_gate'; readonly toolName: string; readonly command: string }
  | { readonly type: 'iteration'; readonly count: number }
  | {
      readonly type: 'done'
      readonly stopReason: 'end_turn' | 'cancelled' | 'error'
      readonly result?: string
      readonly iterations?: number
    }

type AgentContext = {
  modelCall(messages: readonly Message[]): Promise<Thought>
  executeTool(call: Call): Promise<string>
  bash: { execute(command: string): Promise<Shell> }
  check: string
  watch(message: SnapshotMessage): void
}

const requiresApproval = (name = '') => name === 'bash'
const isDangerous = (command = '') => /rm -rf/.test(command)

const createAgentLoop = useBehavioral<AgentEvents, AgentContext, Output>({
  publicEvents: ['prompt', 'approval_response', 'cancel', 'setMode'],

  bProgram({ trigger, bThreads, bThread, bSync, useSnapshot, emit, modelCall, executeTool, bash, check, watch }) {
    let mode: 'structured' | 'wiggum' = 'structured'
    let run = 0
    let isAsking = false
    let thought: Thought = {}
    let outcome: Outcome = {}
    let command: Call = { toolName: 'bash', command: '' }
    let isDone = false
    let iterationCount = 0
    let maxIterations = 100
    let messages: Message[] = []

    /** What an effect gives is dropped when its run was cancelled meanwhile. */
    const inRun = async (effect: () => Promise<() => void>) => {
      const mine = run
      const deliver = await effect().catch((error) => () => trigger({ type: 'failed', detail: String(error) }))
      if (mine === run) deliver()
    }

    // =========================================================
    // STRUCTURED MODE - Full orchestration with approval gates
    // =========================================================
    const structuredLoop = bThread(
      [
        bSync({ waitFor: ['prompt', 'next'] }),
        bSync({ request: { type: 'think' } }),
        bSync({ waitFor: 'thought' }),
        // The act carries its call; it is blocked until the approval, and skipped when it is denied.
        bSync({
          request: () => (thought.call ? { type: 'act', detail: thought.call } : { type: 'answer', detail: thought.text ?? '' }),
          waitFor: 'denied',
        }),
        bSync({ waitFor: 'acted' }),
        bSync({ request: { type: 'observe' } }),
      ],
      true,
      { interrupt: ['enterWiggum', 'cancel', 'failed'] },
    )

    const approvalGate = bThread(
      [
        // Before the act: at the thought that asks for it.
        bSync({
          waitFor: ({ type, detail }) =>
            type === 'thought' && requiresApproval(detail.call?.toolName) && !isDangerous(detail.call?.command),
        }),
        bSync({ block: 'act', request: () => ({ type: 'approval_gate', detail: thought.call ?? { toolName: '', command: '' } }) }),
        bSync({ block: 'act', waitFor: [({ type, detail }) => type === 'approval_response' && detail.allow, 'denied'] }),
      ],
      true,
      { interrupt: ['enterWiggum', 'cancel', 'failed'] },
    )

    // =========================================================
    // WIGGUM MODE - "Let it cook" - BASH until done
    // =========================================================
    const iteration = bThread(
      [
        bSync({ request: { type: 'wiggum_generate' } }),
        bSync({ waitFor: 'wiggum_generated' }),
        bSync({ request: () => ({ type: 'wiggum_execute', detail: command }), waitFor: 'denied' }),
        bSync({ waitFor: 'wiggum_executed' }),
        bSync({ request: { type: 'wiggum_check' } }),
        bSync({ waitFor: 'wiggum_checked' }),
      ],
      () => !isDone && iterationCount < maxIterations,
    )
    const wiggumLoop = bThread([bSync({ waitFor: 'enterWiggum' }), iteration, bSync({ request: { type: 'wiggum_complete' } })], true, {
      interrupt: ['exitWiggum', 'cancel', 'failed'],
    })

    // Iteration guard - prevents runaway loops
    const wiggumGuard = bThread([bSync({ block: ({ type }) => type === 'wiggum_execute' && iterationCount >= maxIterations })], true)

    // =========================================================
    // SAFETY - Always active regardless of mode
    // =========================================================
    const safetyGuard = bThread(
      [bSync({ block: ({ type, detail }) => (type === 'act' || type === 'wiggum_execute') && isDangerous(detail.command) })],
      true,
    )
    const safetyAnswer = bThread(
      [
        bSync({
          waitFor: ({ type, detail }) =>
            (type === 'thought' && isDangerous(detail.call?.command)) || (type === 'wiggum_generated' && isDangerous(detail.command)),
        }),
        bSync({ request: { type: 'denied', detail: 'dangerous' } }),
      ],
      true,
    )

    /** Sets the threads that are not there, or that an interrupt has ended. */
    const install = () => {
      const all = { safetyAnswer, structuredLoop, approvalGate, wiggumLoop, wiggumGuard, safetyGuard }
      const isThere = ({ running, pending }: { running: boolean; pending: boolean }) => running || pending
      bThreads.set(Object.fromEntries(Object.entries(all).filter(([name]) => !isThere(bThreads.has(name)))))
    }
    install()
    useSnapshot(watch)

    return {
      // Mode switching
      setMode({ newMode, maxIter }) {
        mode = newMode
        maxIterations = maxIter ?? 100
        iterationCount = 0
        isDone = false
        trigger({ type: newMode === 'wiggum' ? 'enterWiggum' : 'exitWiggum' })
      },
      exitWiggum() {
        run += 1
        trigger({ type: 'restart' })
      },
      restart: install,

      // Structured mode handlers
      prompt({ text }) {
        messages = [...messages, { role: 'user', content: text }]
      },
      think: () =>
        inRun(async () => {
          const response = await modelCall(messages)
          return () => trigger({ type: 'thought', detail: response })
        }),
      thought(response) {
        thought = response
      },
      act: (call) =>
        inRun(async () => {
          const output = await executeTool(call)
          return () => trigger({ type: 'acted', detail: { output } })
        }),
      answer(text) {
        emit({ type: 'done', stopReason: 'end_turn', result: text })
        trigger({ type: 'acted', detail: { final: true } })
      },
      acted(result) {
        outcome = result
      },
      observe() {
        if (outcome.final) return
        messages = [...messages, { role: 'tool', content: outcome.error ?? outcome.output ?? '' }]
        trigger({ type: 'next' })
      },

      // Wiggum mode handlers
      enterWiggum() {
        run += 1
      },
      wiggum_generate: () =>
        inRun(async () => {
          const { call } = await modelCall(messages)
          return () => trigger({ type: 'wiggum_generated', detail: call ?? { toolName: 'bash', command: 'true' } })
        }),
      wiggum_generated(call) {
        command = call
      },
      wiggum_execute: (call) =>
        inRun(async () => {
          iterationCount++
          emit({ type: 'iteration', count: iterationCount })
          const result = await bash.execute(call.command)
          return () => trigger({ type: 'wiggum_executed', detail: result })
        }),
      wiggum_executed({ stdout, stderr }) {
        messages = [...messages, { role: 'assistant', content: `$ ${command.command}\n${stdout}\n${stderr}` }]
      },
      // A command decides, not the model about itself.
      wiggum_check: () =>
        inRun(async () => {
          const { code } = await bash.execute(check)
          return () => trigger({ type: 'wiggum_checked', detail: { done: code === 0 } })
        }),
      wiggum_checked({ done }) {
        isDone = done
      },
      wiggum_complete() {
        const ending = isDone ? ({ stopReason: 'end_turn' } as const) : ({ stopReason: 'error', result: 'iteration limit' } as const)
        emit({ type: 'done', ...ending, iterations: iterationCount })
      },

      // Shared handlers
      approval_gate(call) {
        isAsking = true
        emit({ type: 'approval_gate', ...call })
      },
      approval_response({ allow }) {
        if (isAsking && !allow) trigger({ type: 'denied', detail: 'denied' })
        isAsking = false
      },
      denied(reason) {
        if (mode === 'structured') return trigger({ type: 'acted', detail: { error: reason } })
        iterationCount++
        trigger({ type: 'wiggum_executed', detail: { stdout: '', stderr: reason, code: 126 } })
      },
      failed(why) {
        run += 1
        emit({ type: 'done', stopReason: 'error', result: why })
        trigger({ type: 'restart' })
      },
      cancel() {
        run += 1
        emit({ type: 'done', stopReason: 'cancelled' })
        trigger({ type: 'restart' })
      },
    }
  },
})

type World = {
  /** What the model answers, in order; then that it is done. */
  readonly thoughts?: readonly Thought[]
  /** Exit codes of the check, in order; then 0. */
  readonly checks?: readonly number[]
  modelCall?(messages: readonly Message[]): Promise<Thought>
}

/** Starts the loop in a world whose model, tools and shell are functions, and follows it until it says `done`. */
async function start({ thoughts = [], checks = [], modelCall }: World = {}) {
  const [outputs, happened, ran, seen]: [Output[], string[], string[], (readonly Message[])[]] = [[], [], [], []]
  const waiting: { readonly type: Output['type']; readonly found: () => void }[] = []
  const [left, codes] = [[...thoughts], [...checks]]
  const trigger: PublicTrigger<AgentEvents, Output> = await createAgentLoop({
    async modelCall(messages) {
      seen.push(messages)
      return modelCall ? modelCall(messages) : (left.shift() ?? { text: 'done' })
    },
    async executeTool({ command }) {
      ran.push(command)
      return `ran ${command}`
    },
    bash: {
      async execute(command) {
        ran.push(command)
        return { stdout: '', stderr: '', code: command === 'make check' ? (codes.shift() ?? 0) : 0 }
      },
    },
    check: 'make check',
    watch(message) {
      if (message.kind === 'selection') happened.push(...message.bids.filter(({ selected }) => selected).map(({ type }) => type))
    },
  })
  trigger.onEmit((output) => {
    outputs.push(output)
    for (const one of waiting.splice(0)) one.type === output.type ? one.found() : waiting.push(one)
  })
  const next = (type: Output['type']) => new Promise<void>((found) => void waiting.push({ type, found }))
  return { trigger, outputs, happened, ran, seen, next }
}

const bash = (command: string): Thought => ({ call: { toolName: 'bash', command } })
const read = (command: string): Thought => ({ call: { toolName: 'read', command } })

test('structured: think, act, observe, think again, answer; then it waits for the next prompt', async () => {
  const { trigger, outputs, happened, seen, next } = await start({ thoughts: [read('notes')] })
  const done = next('done')
  trigger({ type: 'prompt', detail: { text: 'Read my notes' } })
  await done
  expect(happened).toEqual([
    ...['prompt', 'think', 'thought', 'act', 'acted', 'observe', 'next', 'think', 'thought', 'answer', 'acted', 'observe'],
  ])
  expect(outputs).toEqual([{ type: 'done', stopReason: 'end_turn', result: 'done' }])
  expect(seen[1]).toEqual([
    { role: 'user', content: 'Read my notes' },
    { role: 'tool', content: 'ran notes' },
  ])
})

test('the gate shows before the act: nothing runs until the approval, and then exactly the call that was shown', async () => {
  const { trigger, outputs, ran, happened, next } = await start({ thoughts: [bash('make')] })
  const [asked, done] = [next('approval_gate'), next('done')]
  trigger({ type: 'prompt', detail: { text: 'Build it' } })
  await asked
  expect([ran, happened.includes('act')]).toEqual([[], false])
  expect(outputs).toEqual([{ type: 'approval_gate', toolName: 'bash', command: 'make' }])
  trigger({ type: 'approval_response', detail: { allow: true } })
  await done
  expect(ran).toEqual(['make'])
})

test('the act carries its call: a tool that needs no approval runs without one, with its input', async () => {
  const { trigger, outputs, ran, next } = await start({ thoughts: [read('a.txt'), read('b.txt')] })
  const done = next('done')
  trigger({ type: 'prompt', detail: { text: 'Read both' } })
  await done
  expect(ran).toEqual(['a.txt', 'b.txt'])
  expect(outputs.map(({ type }) => type)).toEqual(['done'])
})

test('the prompt comes once: what was observed asks for the next thought, and an answer for none', async () => {
  const { trigger, happened, seen, next } = await start({ thoughts: [read('a'), read('b')] })
  for (const text of ['one', 'two']) {
    const done = next('done')
    trigger({ type: 'prompt', detail: { text } })
    await done
  }
  expect(happened.filter((type) => type === 'prompt')).toHaveLength(2)
  expect(seen).toHaveLength(4)
})

test('what was denied is observed: the tool does not run, the model reads it and goes on', async () => {
  const { trigger, ran, seen, next } = await start({ thoughts: [bash('make')] })
  const [asked, done] = [next('approval_gate'), next('done')]
  trigger({ type: 'prompt', detail: { text: 'Build it' } })
  await asked
  trigger({ type: 'approval_response', detail: { allow: false } })
  await done
  expect(ran).toEqual([])
  expect(seen[1]?.at(-1)).toEqual({ role: 'tool', content: 'denied' })
})

test('an answer that nobody asked for approves and denies nothing', async () => {
  const { trigger, ran, next } = await start({ thoughts: [bash('make')] })
  trigger({ type: 'approval_response', detail: { allow: true } })
  trigger({ type: 'approval_response', detail: { allow: false } })
  const asked = next('approval_gate')
  trigger({ type: 'prompt', detail: { text: 'Build it' } })
  await asked
  expect(ran).toEqual([])
})

test('a dangerous command is refused in both modes, without a question', async () => {
  const { trigger, outputs, ran, seen, next } = await start({
    thoughts: [bash('rm -rf /'), { text: 'sorry' }, bash('rm -rf /')],
    checks: [1],
  })
  const done = next('done')
  trigger({ type: 'prompt', detail: { text: 'Clean up' } })
  await done
  expect([ran, outputs.map(({ type }) => type), seen[1]?.at(-1)?.content]).toEqual([[], ['done'], 'dangerous'])
  const second = next('done')
  trigger({ type: 'setMode', detail: { newMode: 'wiggum', maxIter: 2 } })
  await second
  expect(ran).not.toContain('rm -rf /')
})

test('wiggum runs until the check passes, not once', async () => {
  const { trigger, outputs, ran, next } = await start({ thoughts: [bash('one'), bash('two'), bash('three')], checks: [1, 1, 0] })
  const done = next('done')
  trigger({ type: 'setMode', detail: { newMode: 'wiggum' } })
  await done
  expect(ran).toEqual(['one', 'make check', 'two', 'make check', 'three', 'make check'])
  expect(outputs.at(-1)).toEqual({ type: 'done', stopReason: 'end_turn', iterations: 3 })
  expect(outputs.filter(({ type }) => type === 'iteration')).toHaveLength(3)
})

test('wiggum asks for no approval, and its end is a command: what the model says of itself counts for nothing', async () => {
  const { trigger, outputs, next } = await start({ modelCall: async () => ({ ...bash('true'), text: '{"done": true}' }), checks: [1, 1] })
  const done = next('done')
  trigger({ type: 'setMode', detail: { newMode: 'wiggum', maxIter: 2 } })
  await done
  expect(outputs.map(({ type }) => type)).toEqual(['iteration', 'iteration', 'done'])
  expect(outputs.at(-1)).toMatchObject({ stopReason: 'error' })
})

test.each([0, 1, 3])('at a limit of %d iterations it ends with a done', async (maxIter) => {
  const { trigger, outputs, next } = await start({ checks: [1, 1, 1, 1] })
  const done = next('done')
  trigger({ type: 'setMode', detail: { newMode: 'wiggum', maxIter } })
  await done
  expect(outputs.at(-1)).toEqual({ type: 'done', stopReason: 'error', result: 'iteration limit', iterations: maxIter })
})

test.each(['structured', 'wiggum'] as const)(
  'cancel ends the mode %s: what is under way is dropped, and a new prompt starts afresh',
  async (mode) => {
    const answers: PromiseWithResolvers<Thought>[] = []
    const { trigger, outputs, happened, ran, next } = await start({
      modelCall() {
        answers.push(Promise.withResolvers<Thought>())
        return answers.at(-1)?.promise ?? Promise.reject(new Error('no answer'))
      },
    })
    if (mode === 'wiggum') trigger({ type: 'setMode', detail: { newMode: 'wiggum' } })
    else trigger({ type: 'prompt', detail: { text: 'Build it' } })
    trigger({ type: 'cancel' })
    expect(outputs).toEqual([{ type: 'done', stopReason: 'cancelled' }])
    answers[0]?.resolve(bash('make'))
    await answers[0]?.promise
    await Bun.sleep(0)
    expect([ran, happened.some((type) => ['thought', 'wiggum_generated'].includes(type))]).toEqual([[], false])
    const done = next('done')
    if (mode === 'wiggum') trigger({ type: 'setMode', detail: { newMode: 'wiggum' } })
    else trigger({ type: 'prompt', detail: { text: 'Again' } })
    answers[1]?.resolve(mode === 'wiggum' ? bash('make') : { text: 'here' })
    await done
    expect(outputs.at(-1)).toMatchObject({ type: 'done', stopReason: 'end_turn' })
    expect(ran).toEqual(mode === 'wiggum' ? ['make', 'make check'] : [])
  },
)

test('cancel closes an open gate: a late yes runs nothing', async () => {
  const { trigger, ran, next } = await start({ thoughts: [bash('make')] })
  const asked = next('approval_gate')
  trigger({ type: 'prompt', detail: { text: 'Build it' } })
  await asked
  trigger({ type: 'cancel' })
  trigger({ type: 'approval_response', detail: { allow: true } })
  await Bun.sleep(0)
  expect(ran).toEqual([])
})

test('wiggum ends when the mode is set back, and prompts are answered again', async () => {
  const { trigger, outputs, next } = await start({ checks: new Array(50).fill(1) })
  const iterated = next('iteration')
  trigger({ type: 'setMode', detail: { newMode: 'wiggum' } })
  await iterated
  trigger({ type: 'setMode', detail: { newMode: 'structured' } })
  const done = next('done')
  trigger({ type: 'prompt', detail: { text: 'Hello' } })
  await done
  expect(outputs.filter(({ type }) => type === 'done')).toEqual([{ type: 'done', stopReason: 'end_turn', result: 'done' }])
})

test('a model that fails ends the turn with an error, and the next prompt works', async () => {
  const state = { calls: 0 }
  const { trigger, outputs, next } = await start({
    async modelCall() {
      if (state.calls++ === 0) throw new Error('no route')
      return { text: 'here' }
    },
  })
  for (const text of ['one', 'two']) {
    const done = next('done')
    trigger({ type: 'prompt', detail: { text } })
    await done
  }
  expect(outputs).toEqual([
    { type: 'done', stopReason: 'error', result: 'Error: no route' },
    { type: 'done', stopReason: 'end_turn', result: 'here' },
  ])
})
