import { expect, test } from 'bun:test'
import { createProviderFetch } from '../../workspace/net/provider-fetch.ts'
import { clientPort } from './worker-port.ts'

test('a claim whose run or task is named like a path is refused, and a beat that is answered without a lease', async () => {
  const ids: string[][] = []
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    fetch({ url }) {
      if (url.endsWith('/beat')) return Response.json({ ok: true })
      const [run_id, task_id] = ids.shift() ?? []
      return Response.json({ run_id, task: { task_id } })
    },
  })
  const url = `http://127.0.0.1:${server.port}`
  const port = clientPort({
    url,
    token: () => 'cpa_x',
    fetch: createProviderFetch({ baseUrl: url }),
    sleep: async () => {},
    random: () => 0,
  })
  const claim = (...named: string[]) => {
    ids.push(named)
    return port.claim({ role: 'r', agent_id: 'a', wait_ms: 0, labels: [] }, new AbortController().signal)
  }
  for (const named of [['../../../home', 'TASK-001'], ['RUN-001', '../x'], ['RUN-001/..', 'TASK-001'], []])
    await expect(claim(...named)).rejects.toMatchObject({ code: 'conflict' })
  expect((await claim('RUN-001', 'TASK-001'))?.run_id).toBe('RUN-001')
  await expect(port.run('t').beat('TASK-001')).rejects.toMatchObject({ code: 'unavailable' })
  await server.stop(true)
})
