/** Answers what is allowed here and why: the lists in force, the permanent approvals, and what the gate would say of one call. */

import { z } from '@hono/zod-openapi'
import { narrowSetup } from '../../../host/access/channel-profile.ts'
import { explainedGate, type PolicyInForce, policyInForce } from '../../../host/toolset/policy-in-force.ts'
import { builtInTools } from '../../../host/toolset/tool-selection.ts'
import { toolsFor } from '../../../host/toolset/tools-option.ts'
import { addJsonRoute, inScope, plain } from '../../../http/api.ts'
import { HttpError } from '../../../http/http-error.ts'
import { isJsonObject } from '../../../kit/json.ts'
import { type Explanation, explainCall, explainCommand } from '../../../security/explain.ts'
import type { Caller } from '../access.ts'
import { explanation, inForce, standingRule } from '../answer-shapes.ts'
import { type Gateway, type GatewayApi, orMissing, snake } from '../gateway.ts'

const question = z.strictObject({
  command: z
    .string()
    .min(1)
    .max(300_000)
    .optional()
    .openapi({ description: 'A command line; or name a tool', example: 'git push --force' }),
  tool: z.string().min(1).max(200).optional(),
  input: z.record(z.string(), z.unknown()).optional().openapi({ description: 'The arguments of the tool' }),
})
export function policyRoutes(app: GatewayApi, { host, setup }: Gateway): void {
  /** Returns what holds for the caller: the operator's settings, lowered to the limits of the token. */
  const setupFor = ({ access }: Caller) => narrowSetup(setup, access)

  addJsonRoute(app, inScope('read'), 'get /policy', {
    summary: 'The lists and the level that hold for this token',
    gives: [inForce, 'As braidclaw security show --json'],
    async answer({ caller }) {
      const { approvals } = await host.records()
      return policyOut(setup.redactor.value(await policyInForce(setupFor(caller), approvals.rules().length)))
    },
  })
  addJsonRoute(app, inScope('read'), 'post /policy/explain', {
    summary: 'What the gate would say of a command or a call, and why; nothing runs',
    body: [question, 'Either a command, or a tool with its input'],
    gives: [explanation, 'As braidclaw policy explain, without the plan'],
    async answer({ caller, body }) {
      const explained = await explain(setupFor(caller), body)
      return answerOf(setup.redactor.value(explained))
    },
  })
  addJsonRoute(app, inScope('read'), 'get /approvals/rules', {
    summary: 'What is always allowed',
    gives: [z.object({ rules: z.array(standingRule) }), 'The permanent approvals'],
    answer: async () => ({ rules: (await host.records()).approvals.rules().map(snake) }),
  })
  addJsonRoute(app, inScope('admin'), 'delete /approvals/rules/{id}', {
    summary: 'Revoke a permanent approval: from now on such calls ask again',
    params: z.object({ id: z.coerce.number().pipe(z.int().min(0)) }),
    gives: [standingRule, 'What was revoked'],
    async answer({ params }) {
      const { approvals } = await host.records()
      return snake(await orMissing(() => approvals.revokeRule(params.id)))
    },
  })
}

/** @throws HttpError 400 unless it names either a command or a tool */
async function explain(setup: Gateway['setup'], { command, tool, input }: z.infer<typeof question>): Promise<Explanation> {
  if ((command === undefined) === (tool === undefined)) throw new HttpError(400, 'bad_request', 'name either a command or a tool')
  if (command !== undefined) {
    if (input !== undefined) throw new HttpError(400, 'bad_request', 'input belongs to a tool; a command is one line')
    return explainCommand(await explainedGate(setup, { tools: builtInTools }), command)
  }
  const name = tool ?? ''
  const options = await explainedGate(setup, { tools: toolsFor(setup, name, undefined) })
  return explainCall(options, { name, input: isJsonObject(input) ? input : {} })
}

function policyOut({ settings, network, commands, ...rest }: PolicyInForce): z.infer<typeof inForce> {
  return plain({ ...snake(rest), settings: snake(settings), network: snake(network), commands: { ...commands } })
}

function answerOf(explained: Explanation): z.infer<typeof explanation> {
  const { meaning, changes, rules, verdict, risk, rule, reason, summary, writes, network, level, levels } = explained
  return {
    ...{ verdict, risk, rule, reason, summary, level, meaning: meaning ?? null, changes: changes ?? null },
    ...plain({ levels, writes, network }),
    rules: rules.map(({ rule, file, denies }) => ({ rule, file, denies })),
  }
}
