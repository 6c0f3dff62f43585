/** What the control plane does over HTTP: its start, creates, claims and completions at 16 clients, and 500 workers that wait. */

import { connect, type JsonClient } from '../http/json-client.ts'
import type { Server } from '../http/start.ts'
import { median, quantile } from '../measure.ts'
import { type Bench, type Figure, floorKey, operatorToken } from './figures.ts'

const clients = 16
const api = '/api/controlplane'

export async function idleAndReady({ ours }: Bench): Promise<readonly Figure[]> {
  const times: number[] = []
  for (let round = 0; round < 9; round++) {
    await using server = await ours()
    times.push(server.readyMs)
  }
  await using server = await ours()
  await Bun.sleep(3_000)
  const before = server.cpu()
  await Bun.sleep(10_000)
  return [
    { what: 'from the start to the first answer', value: median(times), unit: 'ms', most: 80 },
    { what: 'idle, memory', value: server.memory(), unit: 'MB', most: 60 },
    { what: 'idle, processor', value: (server.cpu() - before) / 100, unit: '%' },
  ]
}

/** A daemon stays: its code is compiled to machine code before anything is measured, however slow the machine is now. */
const [warmCreates, warmClaims] = [12_000, 4_000]

async function warmUp(server: Server, key: string): Promise<void> {
  await fill(server, operatorToken, warmCreates)
  for (let done = 0; done < warmClaims; ) done += (await workRate([server], key)).done
}

export async function creates({ ours, floor }: Bench): Promise<readonly Figure[]> {
  await using one = await ours()
  await using other = await floor()
  for (const server of [one, other]) await fill(server, operatorToken, warmCreates)
  const [measured, floors]: [Cost[], Cost[]] = [[], []]
  for (let round = 0; round < 5; round++) {
    measured.push(await costOf(one, createRate([one], operatorToken)))
    floors.push(await costOf(other, createRate([other], operatorToken)))
  }
  return against('creates at 16 clients', { measured, floors, wanted: 5_000 })
}

/** `cpu`: the processor time of the server for each, in µs. Other programs on the machine change it less than the rate. */
type Cost = { readonly rate: number; readonly cpu: number }

async function costOf(server: Server, measuring: Promise<Rate>): Promise<Cost> {
  const before = server.cpu()
  const { perSecond, done } = await measuring
  return { rate: perSecond, cpu: ((server.cpu() - before) / done) * 1_000 }
}

type Compared = { readonly measured: readonly Cost[]; readonly floors: readonly Cost[]; readonly wanted: number }

/** The lower of both limits counts, as the issue has it. */
function against(what: string, { measured, floors, wanted }: Compared): readonly Figure[] {
  const [rates, cpus, floorRates, floorCpus] = [ratesOf(measured), cpusOf(measured), ratesOf(floors), cpusOf(floors)]
  const isFast = median(rates) >= wanted
  return [
    { what, value: median(rates), unit: '/s', ...(isFast ? { least: wanted } : {}) },
    { what: '… of the floor', value: median(floorRates), unit: '/s' },
    { what: '… against the floor', value: share(rates, floorRates), unit: '%', ...(isFast ? {} : { least: 60 }) },
    { what: '… processor time for one', value: median(cpus), unit: 'µs' },
    { what: '… of the floor', value: median(floorCpus), unit: 'µs' },
    { what: '… of the floor against ours', value: share(floorCpus, cpus), unit: '%' },
  ]
}

const ratesOf = (costs: readonly Cost[]) => costs.map(({ rate }) => rate)
const cpusOf = (costs: readonly Cost[]) => costs.map(({ cpu }) => cpu)
const share = (part: readonly number[], of: readonly number[]) => median(part.map((value, at) => value / (of[at] ?? Number.NaN))) * 100

const createBody = JSON.stringify({ title: 'bench', role: 'bench', context: { at: 1 } })

/** Clients share the servers evenly. */
export async function createRate(servers: readonly Server[], token: string): Promise<Rate> {
  return await rate(servers, async (client) => {
    const { status } = await client.send({ path: `${api}/tasks`, token, body: createBody })
    if (status !== 201) throw new Error(`create: ${status}`)
    return true
  })
}

export type Rate = { readonly perSecond: number; readonly done: number }

/** How often a second all clients together get through `work`, for two seconds or until one has nothing to do. */
async function rate(servers: readonly Server[], work: (client: JsonClient, at: number) => Promise<boolean>): Promise<Rate> {
  const all = await Promise.all(Array.from({ length: clients }, (_, at) => connect(servers[at % servers.length]?.port ?? 0)))
  const state = { done: 0, isOver: false }
  const begun = performance.now()
  const timer = setTimeout(() => {
    state.isOver = true
  }, 2_000)
  await Promise.all(
    all.map(async (client, at) => {
      while (!state.isOver && (await work(client, at))) state.done += 1
    }),
  )
  clearTimeout(timer)
  const seconds = (performance.now() - begun) / 1_000
  for (const client of all) client.close()
  return { perSecond: state.done / seconds, done: state.done }
}

export async function claimAndComplete({ ours, floor }: Bench): Promise<readonly Figure[]> {
  await using one = await ours()
  await using other = await floor()
  const key = await newAgent(one, 'w0')
  await warmUp(one, key)
  await warmUp(other, floorKey)
  const [measured, floors]: [Cost[], Cost[]] = [[], []]
  for (let round = 0; round < 5; round++) {
    await fill(one, operatorToken, 12_000)
    measured.push(await costOf(one, workRate([one], key)))
    await fill(other, operatorToken, 12_000)
    floors.push(await costOf(other, workRate([other], floorKey)))
  }
  return against('claims with completion at 16 clients', { measured, floors, wanted: 3_000 })
}

async function fill({ port }: Server, token: string, count: number): Promise<void> {
  const all = await Promise.all(Array.from({ length: clients }, () => connect(port)))
  await Promise.all(
    all.map(async (client, at) => {
      for (let done = at; done < count; done += clients) await client.send({ path: `${api}/tasks`, token, body: createBody })
    }),
  )
  for (const client of all) client.close()
}

const claimBody = JSON.stringify({ role: 'bench', agent_id: 'w0' })

export async function workRate(servers: readonly Server[], key: string): Promise<Rate> {
  return await rate(servers, async (client) => {
    const claimed = await client.send({ path: `${api}/tasks/claim`, token: key, body: claimBody })
    if (claimed.status !== 200) return false
    const { run_token: token, task } = JSON.parse(claimed.text)
    const result = { status: 'success', output: 'done', tokens_used: 0 }
    const body = JSON.stringify({
      event_type: 'task_completed',
      task_id: task.task_id ?? '',
      agent_id: 'w0',
      skill_executed: 'bench',
      result,
    })
    const ended = await client.send({ path: `${api}/activity`, token, body })
    if (ended.status !== 200) throw new Error(`activity: ${ended.status} ${ended.text}`)
    return true
  })
}

export async function newAgent({ port }: Server, id: string): Promise<string> {
  const client = await connect(port)
  await client.send({ path: `${api}/agents`, token: operatorToken, body: JSON.stringify({ id, role: 'bench' }) })
  const { text } = await client.send({ path: `${api}/agents/${id}/keys`, token: operatorToken, body: '{}' })
  client.close()
  return JSON.parse(text).key
}

const waiters = 500
const arriving = 1_000

/** From sending a new task to the claim that gets it, while 500 workers wait. */
export async function waitingWorkers({ ours }: Bench): Promise<readonly Figure[]> {
  await using server = await ours()
  const created = new Map<string, number>()
  const delays: number[] = []
  const state = { isOver: false }
  const keys = new Map<number, string>()
  for (let at = 0; at < waiters; at++) keys.set(at, await newAgent(server, `w${at}`))
  const all = await Promise.all(Array.from({ length: waiters }, () => connect(server.port)))
  const work = async (client: JsonClient, at: number) => {
    const body = JSON.stringify({ role: 'bench', agent_id: `w${at}`, wait_ms: 20_000 })
    while (!state.isOver) {
      const { status, text } = await client.send({ path: `${api}/tasks/claim`, token: keys.get(at) ?? '', body })
      if (status !== 200) continue
      const { task } = JSON.parse(text)
      delays.push(performance.now() - (created.get(task.title) ?? Number.NaN))
    }
  }
  for (const [at, client] of all.entries()) void work(client, at)
  await Bun.sleep(2_000)
  const creator = await connect(server.port)
  for (let at = 0; at < arriving; at++) {
    created.set(`task ${at}`, performance.now())
    await creator.send({ path: `${api}/tasks`, token: operatorToken, body: JSON.stringify({ title: `task ${at}`, role: 'bench' }) })
    await Bun.sleep(3)
  }
  await Bun.sleep(1_000)
  state.isOver = true
  for (const client of [...all, creator]) client.close()
  return [
    { what: '500 workers wait, claims of 1,000 tasks', value: delays.length, unit: 'claims', least: arriving },
    { what: '… from the create to the claim, p50', value: median(delays), unit: 'ms' },
    { what: '… p99', value: quantile(delays, 0.99), unit: 'ms', most: 30 },
  ]
}
