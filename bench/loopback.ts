/** Starts the loopback model in a process of its own, so that its work is not counted with the client's. */

import { join } from 'node:path'
import { isObject } from '../src/kit/json.ts'
import type { Stats } from './model.ts'

export type Model = {
  /** Without a trailing slash or `/v1`. */ readonly url: string /** What came since it was last asked. */
  stats(): Promise<Stats>
  stop(): void
}

export async function startModel(): Promise<Model> {
  const child = Bun.spawn([process.execPath, '--config=/dev/null', '--no-env-file', join(import.meta.dir, 'model.ts')], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  for await (const chunk of child.stdout) {
    const url = `http://127.0.0.1:${new TextDecoder().decode(chunk).trim()}`
    return { url, stats: () => stats(url), stop: () => child.kill() }
  }
  throw new Error('the loopback model did not start')
}

async function stats(url: string): Promise<Stats> {
  const said: unknown = await fetch(`${url}/stats`).then((response) => response.json())
  if (isStats(said)) return said
  throw new Error(`the loopback model said ${JSON.stringify(said)}`)
}

function isStats(said: unknown): said is Stats {
  return isObject(said) && [said.requests, said.firstBytes, said.firstTools].every(Number.isInteger)
}
