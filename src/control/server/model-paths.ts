/** Describes the paths of the model APIs in /openapi.json; src/control/llm answers them itself, in the form of the vendors. */

import { z } from '@hono/zod-openapi'
import { eventStream, json } from '../../http/answers/shapes.ts'
import { prefix } from './access/control-route.ts'
import type { ControlApi } from './control-server.ts'

const paths = [
  ['post', '/chat/completions', "OpenAI's chat completions, metered"],
  ['post', '/responses', "OpenAI's responses, metered"],
  ['post', '/messages', "Anthropic's messages, metered; the token may also come as X-Api-Key"],
  ['post', '/messages/count_tokens', "Anthropic's count of the tokens of a request"],
  ['get', '/models', 'The models of the upstream'],
] as const

export function describeModelPaths(app: ControlApi): void {
  const vendorsObject = z.looseObject({})
  for (const [method, path, summary] of paths)
    app.openAPIRegistry.registerPath({
      method,
      path: `${prefix}/llm/v1${path}`,
      summary,
      security: [{ bearer: ['run'] }],
      ...(method === 'post' ? { request: { body: json(vendorsObject, 'As the vendor describes it') } } : {}),
      responses: {
        200: { description: 'As the vendor answers', content: { 'application/json': { schema: vendorsObject }, ...eventStream } },
        402: json(vendorsObject, 'The budget is reached; in the form of the vendor'),
      },
    })
}
