/** Says what is allowed, asked about and refused for the caller: GET /policy, and POST /policy/explain for one call. Runs nothing. */

import { z } from '@hono/zod-openapi'
import { narrowSetup } from '../../../host/access/narrow-setup.ts'
import { policyOf } from '../../../host/setup/effective-policy.ts'
import { explainedGate } from '../../../host/toolset/explained-gate.ts'
import { builtInTools } from '../../../host/toolset/tool-selection.ts'
import { route } from '../../../http/api.ts'
import { isObject, type JsonObject } from '../../../kit/json.ts'
import { explainCall, levelOf } from '../../../security/explain.ts'
import type { Caller } from '../access/token-access.ts'
import type { Gateway, GatewayApi } from '../gateway.ts'
import { json } from '../shapes.ts'
import { plain, snake } from '../snake.ts'

const words = z.array(z.string())
const policy = z.looseObject({
  level: z.string(),
  workspace: z.string(),
  workspace_only: z.boolean(),
  ask: z.string(),
  egress: z.string(),
  allow_commands: words,
  forbidden_commands: words,
  forbidden_paths: words,
  forbidden_reads: words,
  allowed_domains: words,
  tools: z.optional(words),
})
const call = z.strictObject({
  tool: z.string().min(1).max(100),
  input: z.custom<JsonObject>(isObject, 'must be an object').openapi({ type: 'object' }),
})
const explanation = z.object({
  verdict: z.enum(['allow', 'ask', 'deny']),
  risk: z.string(),
  rule: z.string(),
  reason: z.string(),
  summary: z.string(),
})

export function policyRoutes(app: GatewayApi, { setup }: Gateway): void {
  const narrowed = ({ access }: Caller) => narrowSetup(setup, access)

  app.openapi(
    route('read', {
      method: 'get',
      path: '/policy',
      summary: 'The level and the lists in force for this token',
      responses: { 200: json(policy, 'The policy') },
    }),
    (c) => {
      const mine = narrowed(c.var.caller)
      const { toolsAllow, forbiddenReads = [], ...found } = policyOf(mine.config, mine.paths, mine.context.env, mine.access)
      const { workspace, workspaceOnly, ask, egress, allowCommands, forbiddenCommands, forbiddenPaths, allowedDomains } = found
      const lists = { allowCommands, forbiddenCommands, forbiddenPaths, forbiddenReads, allowedDomains }
      const shown = { level: levelOf(found), workspace, workspaceOnly, ask, egress, ...lists, ...(toolsAllow ? { tools: toolsAllow } : {}) }
      return c.json(plain(snake(shown)), 200)
    },
  )
  app.openapi(
    route('read', {
      method: 'post',
      path: '/policy/explain',
      summary: 'What the gate and the rules say of one call. Runs nothing',
      request: { body: json(call, 'The call') },
      responses: { 200: json(explanation, 'As braidclaw policy explain --json') },
    }),
    async (c) => {
      const { tool, input } = c.req.valid('json')
      const options = await explainedGate(narrowed(c.var.caller), { tools: builtInTools })
      return c.json(plain(setup.redactor.value(await explainCall(options, { name: tool, input }))), 200)
    },
  )
}
