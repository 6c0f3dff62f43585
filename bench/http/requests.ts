/** Clients that ask as programs do: turns one after the other, many at once, and the page of a browser. */

import { isObject } from '../../src/kit/json.ts'
import type { Server } from './start.ts'

/** As people talk: so many turns in each conversation. The floor knows no conversations. */
const talkLength = 10

/** Does that many turns, one after the other. @returns their times in milliseconds */
export async function turns(server: Server, token: string, count: number): Promise<number[]> {
  const times: number[] = []
  const talk: { id?: string } = {}
  for (let at = 0; at < count; at++) {
    const { ms, conversation } = await turn(server, token, at % talkLength === 0 ? undefined : talk.id)
    times.push(ms)
    talk.id = conversation
  }
  return times
}

export async function turnsPerSecond(server: Server, token: string, clients: number, each: number): Promise<number> {
  const begun = performance.now()
  await Promise.all(Array.from({ length: clients }, () => turns(server, token, each)))
  return (clients * each) / ((performance.now() - begun) / 1_000)
}

async function turn({ url }: Server, token: string, id?: string): Promise<{ readonly ms: number; readonly conversation?: string }> {
  const begun = performance.now()
  const response = await fetch(`${url}/chat`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify({ message: 'What is in the notes?', ...(id === undefined ? {} : { conversation_id: id }) }),
  })
  const answer: unknown = await response.json()
  const ms = performance.now() - begun
  if (response.status === 200 && isObject(answer) && String(answer.text).length > 10)
    return { ms, ...(typeof answer.conversation_id === 'string' ? { conversation: answer.conversation_id } : {}) }
  throw new Error(`the turn was answered with ${response.status} ${JSON.stringify(answer)}`)
}

/** @returns how many bytes a browser receives for the page and what it names; undefined while there is no page */
export async function firstLoad(url: string): Promise<number | undefined> {
  const page = await received(`${url}/`)
  if (page.status !== 200) return undefined
  const named = [...page.text.matchAll(/(?:src|href)="(\/?[^":]+)"/g)].map(([, path = '']) => new URL(path, `${url}/`).href)
  const parts = await Promise.all(named.map(received))
  return [page, ...parts].reduce((sum, { bytes }) => sum + bytes, 0)
}

async function received(url: string): Promise<{ readonly status: number; readonly bytes: number; readonly text: string }> {
  const response = await fetch(url, { headers: { 'accept-encoding': 'gzip, br' } })
  const bytes = new Uint8Array(await response.arrayBuffer())
  const sent = Number(response.headers.get('content-length') ?? bytes.byteLength)
  return { status: response.status, bytes: sent, text: new TextDecoder().decode(bytes) }
}
