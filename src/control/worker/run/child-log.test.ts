/** The log of a run: its cap, its way to the control plane, and what a broken connection does to it. */

import { expect, test } from 'bun:test'
import { until } from '../../../../test/support/until.ts'
import { sha256 } from '../../../kit/sha256.ts'
import { PlaneRefusal } from '../../contract/plane-refusal.ts'
import { mostLogBytes, openRunLog } from './child-log.ts'

/** Stores pieces as the control plane does: by the byte where they begin. */
function logAtPlane() {
  const state = { text: '', calls: 0, failures: 0, refusals: 0 }
  return {
    state,
    async appendLog(_runId: string, at: number, piece: string) {
      state.calls += 1
      if (state.refusals > 0) {
        state.refusals -= 1
        throw new PlaneRefusal('lease_lost', 'the lease is lost')
      }
      const known = Buffer.from(state.text)
      if (at > known.length) throw new Error(`a gap: ${at} after ${known.length}`)
      state.text = Buffer.concat([known.subarray(0, at), Buffer.from(piece)]).toString()
      // The piece has arrived, but its answer has not.
      if (state.failures-- > 0) throw new Error('connection reset')
      return { log_bytes: Buffer.byteLength(state.text), log_truncated: false }
    },
  }
}

const secret = 'cpr_Zk3vX9qLm2TnB7wYc5RdHs8JfGp4Ua6E'

function open(port = logAtPlane()) {
  const pane: string[] = []
  const log = openRunLog({ runId: 'RUN-001', port, secret, agentLog: { write: (text) => void pane.push(text) } })
  return { log, port, pane: () => pane.join('') }
}

test('what the child writes arrives whole, control characters included, however the pieces divide it', async () => {
  const { log, port, pane } = open()
  const text = 'ä\u001b[31mred\u0007 €\r\n'
  const bytes = Buffer.from(text)
  for (const byte of bytes) log.take(Uint8Array.of(byte), 'stdout')
  expect(await log.close(30_000)).toBe(true)
  expect(port.state.text).toBe(text)
  expect(pane()).toBe(text)
  expect(log.summary()).toEqual({ bytes: bytes.length, digest: sha256(bytes), truncated: false })
})

test('bytes that are no text do not stop the log', async () => {
  const { log, port } = open()
  log.take(Uint8Array.of(0xff, 0x61), 'stdout')
  log.take(Uint8Array.of(0xe2, 0x82), 'stderr')
  expect(await log.close(30_000)).toBe(true)
  expect(port.state.text).toBe('\ufffda\ufffd')
})

test('a connection that breaks in between loses nothing and doubles nothing', async () => {
  const port = logAtPlane()
  port.state.failures = 2
  const { log } = open(port)
  log.write('one ')
  await until(() => port.state.calls === 1)
  log.write('two ')
  expect(await log.close(30_000)).toBe(true)
  expect(port.state.text).toBe('one two ')
})

test('a flood ends at the cap, with a note', async () => {
  const { log, port, pane } = open()
  const chunk = new Uint8Array(1024 * 1024).fill(0x78)
  for (let at = 0; at < 20; at++) log.take(chunk, 'stdout')
  log.write('later')
  expect(await log.close(30_000)).toBe(true)
  expect(log.summary()).toMatchObject({ bytes: mostLogBytes, truncated: true })
  expect(Buffer.byteLength(port.state.text)).toBe(mostLogBytes)
  expect(port.state.text).toEndWith('[the log ends here: it has more than 8 MiB]\n')
  expect(pane()).not.toContain('later')
})

test('after a refusal the rest is sent when the run has ended, perhaps with another token', async () => {
  const port = logAtPlane()
  port.state.refusals = 1
  const { log } = open(port)
  log.write('one ')
  await until(() => port.state.calls === 1)
  expect(port.state.text).toBe('')
  log.write('two')
  expect(await log.close(30_000)).toBe(true)
  expect(port.state.text).toBe('one two')
})

test('closing does not wait for ever for a control plane that is gone', async () => {
  const { log } = open({ ...logAtPlane(), appendLog: () => Promise.reject(new Error('gone')) })
  log.write('one')
  const began = performance.now()
  expect(await log.close(300)).toBe(false)
  expect(performance.now() - began).toBeLessThan(20_000)
})

test('the token of the run is in no log, also when it arrives in pieces', async () => {
  const { log, port, pane } = open()
  for (const piece of [`key=${secret.slice(0, 9)}`, secret.slice(9), '\n']) log.take(Buffer.from(piece), 'stdout')
  log.write(`again ${secret}\n`)
  expect(await log.close(30_000)).toBe(true)
  expect(port.state.text + pane()).not.toContain(secret.slice(4))
  expect(port.state.text).toContain('again ')
})
