import { expect, test } from 'bun:test'
import { createMemoryStage, noon, runOf } from '../../memory/fixture.ts'
import { isAlive, ownerOf } from '../../memory/journal/process-owner.ts'
import { openMemory } from '../../memory/memory.ts'
import type { FiredEnd, ScheduleRow, ScheduleStore } from '../../memory/schedule-store.ts'
import { createScheduleStore } from '../../memory/schedule-store.ts'
import type { RunIdentity } from '../../runtime/port.ts'
import type { RunProgress } from './run-schedule.ts'
import { createScheduler } from './scheduler.ts'

const [minute, hour] = [60_000, 3_600_000]
const good: Omit<FiredEnd, 'ended'> = {
  state: 'good',
  ending: 'answered',
  message: null,
  checked: null,
  tokens: 3,
  micros: null,
  unsent: null,
}
const bad: Omit<FiredEnd, 'ended'> = { ...good, state: 'bad', ending: 'denied', message: 'no' }

const hourly: ScheduleRow = {
  ...{ id: 'schedule_1', name: 'report', kind: 'cron', spec: '0 * * * *', zone: 'UTC', anchor: noon, message: 'go', workspace: '/w' },
  ...{ agent: null, autonomy: null, conversation: 'new', channel: null, recipient: null, checkCommand: null, missed: 'run-once' },
  ...{ overlap: 'skip', pauseAfter: 5, state: 'active', why: '', checked: noon, failures: 0, created: noon, madeInChat: 0 },
}

/** A home whose processes are schedulers of their own over one database, with one clock. */
async function home() {
  const stage = createMemoryStage()
  const clock = { now: noon }
  const log: string[] = []
  const children = new Map<string, Bun.Subprocess>()
  const opened: { close(): void }[] = []
  /** Each scheduler believes to be a process of the machine, which the test can kill. */
  async function process(
    label: string,
    end: (row: ScheduleRow, progress: RunProgress) => Promise<typeof good> | typeof good = () => good,
    continueRuns = false,
  ) {
    const memory = openMemory({ path: stage.path, log: () => {}, now: () => clock.now })
    if (!memory.ok) throw new Error(memory.failure.message)
    opened.push(memory.memory)
    const child = Bun.spawn(['sleep', '60'])
    children.set(label, child)
    const store = createScheduleStore(memory.memory.store, () => clock.now)
    const started: string[] = []
    const scheduler = createScheduler({
      store,
      log: (_level, event, fields) => void log.push(`${label}: ${event}${fields?.why ? `: ${fields.why}` : ''}`),
      now: () => clock.now,
      owner: ownerOf(child.pid),
      isAlive,
      continueRuns,
      async run(row, progress) {
        started.push(new Date(clock.now).toISOString().slice(11, 16))
        return end(row, progress)
      },
    })
    return { store, scheduler, started }
  }
  async function kill(label: string): Promise<void> {
    children.get(label)?.kill('SIGKILL')
    await children.get(label)?.exited
  }
  return {
    ...{ clock, log, process, kill },
    /** Appends the start of a run to the journal. */
    ran: (run: Partial<RunIdentity>, at: number) =>
      stage.memory.journal.append({ run: runOf(1, run), kind: 'external', type: 'run.start', at, body: {} }),
    async [Symbol.asyncDispose]() {
      for (const label of children.keys()) await kill(label)
      for (const each of opened) each.close()
      stage.remove()
    },
  }
}

const states = (store: ScheduleStore) =>
  store.fired
    .last('schedule_1', 20)
    .map(({ due, attempt, state }) => `${new Date(due).toISOString().slice(11, 16)} ${attempt} ${state}`)
    .reverse()

test('each due time is started once, and the sleep ends at the next one', async () => {
  await using at = await home()
  const { store, scheduler, started } = await at.process('a')
  store.schedules.add(hourly)
  expect(scheduler.tick()).toBe(minute)
  at.clock.now = noon + hour - 5_000
  expect(scheduler.tick()).toBe(5_000)
  at.clock.now = noon + hour
  for (const _ of [1, 2, 3]) {
    scheduler.tick()
    await scheduler.settled()
  }
  expect(started).toEqual(['13:00'])
  expect(states(store)).toEqual(['13:00 1 good'])
})

test('of two processes one starts what is due; when it dies the other goes on, and nothing is started twice', async () => {
  await using at = await home()
  const [a, b] = [await at.process('a'), await at.process('b')]
  a.store.schedules.add(hourly)
  for (let now = noon; now <= noon + 6 * hour; now += minute) {
    at.clock.now = now
    if (now === noon + 3 * hour + 30 * minute) await at.kill('a')
    if (now < noon + 3 * hour + 30 * minute) a.scheduler.tick()
    b.scheduler.tick()
    await Promise.all([a.scheduler.settled(), b.scheduler.settled()])
  }
  expect([a.started, b.started]).toEqual([
    ['13:00', '14:00', '15:00'],
    ['16:00', '17:00', '18:00'],
  ])
})

test('a process that was stopped for long loses the lease, and what it then still wants to start has been started', async () => {
  await using at = await home()
  const [a, b] = [await at.process('a'), await at.process('b')]
  a.store.schedules.add(hourly)
  a.scheduler.tick()
  at.clock.now = noon + hour
  b.scheduler.tick()
  await b.scheduler.settled()
  expect(b.started).toEqual(['13:00'])
  // It believes to lead, and that the due time was not handled.
  a.store.schedules.setChecked(hourly.id, noon)
  a.store.lease.release(a.store.lease.holder(at.clock.now) ?? '')
  a.scheduler.tick()
  await Promise.all([a.scheduler.settled(), b.scheduler.settled()])
  expect([a.started, states(a.store)]).toEqual([[], ['13:00 1 good']])
})

test('a process that died between the row and the run is said, and the due time is started again, at most three times', async () => {
  await using at = await home()
  const never = () => new Promise<never>(() => {})
  for (const owner of ['a', 'b', 'c']) {
    const { store, scheduler } = await at.process(owner, never)
    if (owner === 'a') store.schedules.add(hourly)
    at.clock.now = noon + hour + minute
    scheduler.tick()
    await at.kill(owner)
  }
  const last = await at.process('d')
  last.scheduler.tick()
  await last.scheduler.settled()
  expect(states(last.store)).toEqual(['13:00 1 interrupted', '13:00 2 interrupted', '13:00 3 interrupted'])
  expect(last.started).toEqual([])
  expect(at.log.filter((line) => line.includes('interrupted'))).toEqual(
    ['b', 'c', 'd'].map((owner) => `${owner}: schedule interrupted: the process ended before the run began`),
  )
})

test('a run that had begun is never started again after a crash, and its channel is told', async () => {
  await using at = await home()
  const a = await at.process('a', (_row, progress) => {
    progress.opened({ id: 'conversation_1', cancel: () => {} })
    progress.began('run_1')
    return new Promise<never>(() => {})
  })
  a.store.schedules.add({ ...hourly, channel: 'fifo', recipient: 'me' })
  at.clock.now = noon + hour
  a.scheduler.tick()
  await at.kill('a')
  const b = await at.process('b')
  b.scheduler.tick()
  await b.scheduler.settled()
  expect(states(b.store)).toEqual(['13:00 1 interrupted'])
  expect(b.store.fired.last(hourly.id, 1)[0]).toMatchObject({
    runId: 'run_1',
    message: 'the process ended during the run run_1',
    unsent: '[schedule "report": interrupted: the process ended during the run run_1]',
  })
})

test('where turns go on, a run that had begun goes on in its conversation, three times at most, and its message is never asked again', async () => {
  await using at = await home()
  const continued: (string | undefined)[] = []
  const dying = (_row: ScheduleRow, progress: RunProgress) => {
    continued.push(progress.continues)
    if (continued.length === 1) {
      progress.opened({ id: 'conversation_1', cancel: () => {} })
      progress.began('run_1')
    }
    return new Promise<never>(() => {})
  }
  for (const owner of ['a', 'b', 'c', 'd']) {
    const { store, scheduler } = await at.process(owner, dying, true)
    if (owner === 'a') store.schedules.add(hourly)
    at.clock.now = at.clock.now === noon ? noon + hour : at.clock.now + minute
    scheduler.tick()
    await at.kill(owner)
    if (owner === 'a') at.ran({ runId: 'run_1', conversationId: 'conversation_1' }, noon + hour)
  }
  at.clock.now += minute
  const last = await at.process('e', dying, true)
  last.scheduler.tick()
  expect(continued).toEqual([undefined, 'conversation_1', 'conversation_1', 'conversation_1'])
  expect(states(last.store)).toEqual([1, 2, 3, 4].map((attempt) => `13:00 ${attempt} interrupted`))
})

test('with the policy skip an interrupted due time is not made up for', async () => {
  await using at = await home()
  const a = await at.process('a', () => new Promise<never>(() => {}))
  a.store.schedules.add({ ...hourly, missed: 'skip' })
  at.clock.now = noon + hour
  a.scheduler.tick()
  await at.kill('a')
  const b = await at.process('b')
  b.scheduler.tick()
  expect([states(b.store), b.started]).toEqual([['13:00 1 interrupted'], []])
})

test('after so many failures in a row the schedule pauses and says so; a good run counts anew', async () => {
  await using at = await home()
  const results = [bad, good, bad, bad]
  const { store, scheduler } = await at.process('a', () => ({ ...(results.shift() ?? good), unsent: 'answer' }))
  store.schedules.add({ ...hourly, pauseAfter: 2, channel: 'fifo', recipient: 'me' })
  for (let each = 1; each <= 6; each += 1) {
    at.clock.now = noon + each * hour
    scheduler.tick()
    await scheduler.settled()
  }
  expect(states(store)).toEqual(['13:00 1 bad', '14:00 1 good', '15:00 1 bad', '16:00 1 bad'])
  expect(store.schedules.named('report')).toMatchObject({ state: 'paused', why: '2 runs in a row failed' })
  const paused = '[schedule "report" is paused, because 2 runs in a row failed; to continue: braidclaw schedule resume report]'
  expect(store.fired.last(hourly.id, 1)[0]?.unsent).toBe(`answer\n\n${paused}`)
})

test('a due time during a run is recorded as skipped, or waits for the end of the run', async () => {
  for (const [overlap, expected] of [
    ['skip', ['13:00 1 good', '14:00 1 skipped']],
    ['wait', ['13:00 1 good', '14:00 1 good']],
  ] as const) {
    await using at = await home()
    const gate = Promise.withResolvers<void>()
    const { store, scheduler } = await at.process('a', async () => {
      await gate.promise
      return good
    })
    store.schedules.add({ ...hourly, overlap })
    at.clock.now = noon + hour
    scheduler.tick()
    at.clock.now = noon + 2 * hour
    scheduler.tick()
    gate.resolve()
    await scheduler.settled()
    scheduler.tick()
    await scheduler.settled()
    expect(states(store)).toEqual([...expected])
  }
})

test('a single time is started once, and the schedule is done', async () => {
  await using at = await home()
  const { store, scheduler, started } = await at.process('a')
  store.schedules.add({ ...hourly, kind: 'at', spec: String(noon + minute) })
  at.clock.now = noon + 2 * hour
  for (const _ of [1, 2]) {
    scheduler.tick()
    await scheduler.settled()
  }
  expect([started, store.schedules.named('report')?.state]).toEqual([['14:00'], 'done'])
})

test('a run by hand leaves the times of the schedule as they are', async () => {
  await using at = await home()
  const { store, scheduler, started } = await at.process('a')
  store.schedules.add(hourly)
  at.clock.now = noon + 59 * minute
  expect((await scheduler.runNow(hourly.id).ended).state).toBe('good')
  at.clock.now = noon + hour
  scheduler.tick()
  await scheduler.settled()
  expect(started).toEqual(['12:59', '13:00'])
})
