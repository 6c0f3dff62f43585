/** A long log is checked by another process: it must find the same as this one, in the same words. */

import { expect, test } from 'bun:test'
import { readFileSync, writeFileSync } from 'node:fs'
import { verifyInChild } from '../../src/host/records/integrity/receipt-check.ts'
import { begin, calling, events, place } from '../support/host.ts'

test('a process of its own finds what this process finds: nothing, then an altered receipt, then a log that was cut', async () => {
  using at = place()
  const host = await at.host()
  for (const _ of [1, 2, 3]) await events(await begin(host, calling('file_read', { path: 'notes.md' })))
  const { receipts } = await host.records()
  const { line } = receipts.anchor()
  const log = host.setup.config.receipts.path
  const whole = readFileSync(log, 'utf8')
  const states = [whole, whole.replace('"allowed"', '"failed"'), whole.slice(0, whole.indexOf('\n') + 1)]
  const oks: boolean[] = []
  for (const text of states) {
    writeFileSync(log, text)
    for (const options of [{}, { deep: true }, { against: line }]) {
      const here = await receipts.verify(options)
      expect(await verifyInChild(host.setup, options)).toEqual(here)
      oks.push(here.ok)
    }
  }
  expect(oks).toEqual([true, true, true, false, false, false, false, false, false])
  writeFileSync(log, whole)
  await host.close()
}, 120_000)

test('a check that cannot be made is an error, and never an answer', async () => {
  using at = place()
  const host = await at.host()
  const broken = {
    ...host.setup,
    context: { ...host.setup.context, env: { ...host.setup.context.env, BRAIDCLAW_SECURITY_AUTONOMY: 'nonsense' } },
  }
  expect(verifyInChild(broken, {})).rejects.toThrow('the receipts could not be checked')
  await host.close()
})
