/** The floor of a server: a bare Bun.serve, and the store floor's turn behind POST /chat. No token, no gate, no events. */

import { isObject } from '../../src/kit/json.ts'
import { loop } from './loop.ts'
import { openStore } from './open-store.ts'

const store = openStore(Bun.env.BENCH_STORE ?? '.')
const model = Bun.env.BENCH_MODEL ?? 'one-tool'

const server = Bun.serve({
  hostname: '127.0.0.1',
  port: 0,
  routes: {
    '/health': () => Response.json({ ok: true, version: '0.0.0' }),
    '/chat': {
      POST: async (request) => {
        const body: unknown = await request.json()
        const said: string[] = []
        await loop([model, String(isObject(body) ? body.message : '')], { ...store, say: (text) => said.push(text) })
        return Response.json({ text: said.join('').trim() })
      },
    },
  },
})
console.error(`ready: ${server.url.origin}`)
