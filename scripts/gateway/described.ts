/** Asks a gateway in a home of its own for its description. */

import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** @throws Error when the gateway does not start */
export async function describedGateway<Paths>(): Promise<{ readonly paths: Paths }> {
  const home = mkdtempSync(join(tmpdir(), 'braidclaw-docs-'))
  mkdirSync(join(home, 'braidclaw-workspace'))
  const child = Bun.spawn([join(import.meta.dir, '../../bin/braidclaw'), 'serve', '--port', '0'], {
    cwd: home,
    env: { HOME: home, PATH: process.env.PATH ?? '' },
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  try {
    const response = await fetch(`${await placeIn(child.stderr)}/openapi.json`)
    return JSON.parse(await response.text())
  } finally {
    child.kill()
    await child.exited
    rmSync(home, { recursive: true, force: true })
  }
}

async function placeIn(messages: ReadableStream<Uint8Array>): Promise<string> {
  let said = ''
  const decoder = new TextDecoder()
  for await (const piece of messages) {
    said += decoder.decode(piece, { stream: true })
    const place = /ready: (http:\/\/[\w.:]+)/.exec(said)?.[1]
    if (place !== undefined) return place
  }
  throw new Error(`the gateway did not start: ${said}`)
}
