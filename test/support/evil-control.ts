/** Runs a control plane in which every text that somebody outside may choose would drive a terminal. */

import type { Nest } from './cli.ts'
import { evil } from './driven-case.ts'

export type EvilControl = AsyncDisposable & { readonly url: string }

export async function evilControl(at: Nest): Promise<EvilControl> {
  await at.run(['control', 'init'])
  const daemon = at.start(['control', '--port', '0'], { timeoutMs: 240_000 })
  const url = await daemon.says(/ready: (https?:\/\/\S+?) /)
  const out = async (...words: readonly string[]) => {
    const { code, stdout, stderr } = await at.run(['control', ...words], { env: { CONTROLPLANE_API_URL: url } })
    if (code !== 0) throw new Error(`control ${words.join(' ')}: ${stderr}`)
    return stdout.trim()
  }
  const key = await out('agent', 'add', 'odd', '--description', evil, '--key')
  await out('task', 'add', evil, '--role', 'odd', '--description', evil, '--context', JSON.stringify({ [evil]: evil }))
  await out('task', 'add', evil, '--role', 'odd')
  await out('schedule', 'add', 'odd', evil, '--every', '1h', '--role', 'odd')
  await act(url, key)
  await out('agent', 'pause', 'odd', '--reason', evil)
  return {
    url,
    async [Symbol.asyncDispose]() {
      process.kill(daemon.pid, 'SIGKILL')
      await daemon.result
    },
  }
}

/** One run that logs, delivers and fails; one that asks for an approval. */
async function act(url: string, key: string): Promise<void> {
  const ask = async (path: string, token: string, body: object, method = 'POST') => {
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
    const answer = await fetch(`${url}/api/controlplane/${path}`, { method, headers, body: JSON.stringify(body) })
    if (!answer.ok) throw new Error(`${path}: ${await answer.text()}`)
    const told: ReturnType<typeof JSON.parse> = await answer.json()
    return told
  }
  const claim = () => ask('tasks/claim', key, { role: 'odd', agent_id: 'odd' })
  const first = await claim()
  const { run_id: run, run_token: token } = first
  const body = Buffer.from(evil)
  await ask(`runs/${run}/log`, token, { at: 0, piece: `${evil}\n` })
  await ask(
    `runs/${run}/artifacts/odd.txt`,
    token,
    { digest: new Bun.CryptoHasher('sha256').update(body).digest('hex'), body: body.toString('base64') },
    'PUT',
  )
  await ask(`runs/${run}/deliver`, token, { skill: evil, manifest: { evil } })
  await ask(`tasks/${first.task.task_id}/release`, token, { outcome: 'failed', error: evil })
  const second = await claim()
  await ask('activity', second.run_token, {
    event_type: 'approval_request',
    agent_id: 'odd',
    operation: evil,
    reasoning: evil,
    details: { [evil]: evil },
  })
}
