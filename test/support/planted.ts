/** Provides secrets, the places where they are planted, and a model that reveals them. */

import { minimumConfig } from './cli.ts'
import type { Secret } from './secrets.ts'
import { unknownQuestion } from './window-questions.ts'

const random = () => crypto.getRandomValues(new Uint8Array(9)).toBase64()

/** Contains quotes, backslashes, plus, slash and percent, so that every encoding differs. */
export const apiKey = `sk-"A\\b/c+d=e%f ${random()}`
export const named = `pass-${random()}/x`
export const usual = `ghp_${random()}${random()}`
export const secrets: readonly Secret[] = [
  { name: 'the api_key_env of a provider', value: apiKey },
  { name: 'an api_key_env with an unusual name', value: named },
  { name: 'a variable with a usual name', value: usual },
]
/** The environment of the session's processes. */
export const environment = { OPENAI_API_KEY: apiKey, OTHER_PASS: named, GITHUB_TOKEN: usual }

/** Files of the home, by their relative path. */
export const planted: { readonly [path: string]: string } = {
  'braidclaw-workspace/.env.test': `OPENAI_API_KEY=${apiKey}\nOTHER=${named}\nGITHUB_TOKEN=${usual}\n`,
  'braidclaw-workspace/key.json': JSON.stringify({ key: apiKey, nested: JSON.stringify({ usual, named, apiKey }) }),
  'braidclaw-workspace/php.json': `{"key":"${JSON.stringify(apiKey).slice(1, -1).replaceAll('/', '\\/')}"}`,
  'braidclaw-workspace/url.txt': `https://host/?key=${encodeURIComponent(apiKey)}&p=${encodeURIComponent(named)}&t=${usual}\n`,
  'braidclaw-workspace/base64.txt': ['', 'x', 'xy']
    .map((before) => Buffer.from(`${before}${apiKey} ${named} ${usual}`).toString('base64'))
    .join('\n'),
}

/** A remote model that repeats the key it received: in an error, in pieces of text, in a call. It keeps the requests. */
export function vendor() {
  const asked: string[] = []
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    async fetch(request) {
      const unknown = unknownQuestion(request)
      if (unknown) return unknown
      asked.push(await request.text())
      const key = request.headers.get('authorization')?.replace('Bearer ', '') ?? ''
      if (request.url.includes('/refuse/'))
        return Response.json({ error: { message: `Incorrect API key provided: ${key}` } }, { status: 401 })
      if (request.url.includes('/html/')) return new Response(`<html>${key}</html>`, { headers: { 'content-type': 'text/html' } })
      return new Response(asked.length % 2 === 1 ? callWith(key) : textWith(asked.length % 4 === 0 ? key : ofPhp(key)), {
        headers: { 'content-type': 'text/event-stream' },
      })
    },
  })
  return { url: `http://127.0.0.1:${server.port}`, asked, stop: () => server.stop(true) }
}

const chunk = (choice: object) =>
  `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [{ index: 0, ...choice }] })}\n\n`

/** Encodes JSON as PHP does: with a backslash before each slash. */
const ofPhp = (key: string) => JSON.stringify(key).slice(1, -1).replaceAll('/', '\\/')

/** Sends a few characters at a time, so that no piece contains the key. */
function textWith(key: string): string {
  const pieces = `your key is ${key}, is it not?`.match(/[\s\S]{1,5}/gu) ?? []
  return `${pieces.map((content) => chunk({ delta: { content } })).join('')}${chunk({ delta: {}, finish_reason: 'stop' })}data: [DONE]\n\n`
}

function callWith(key: string): string {
  const wanted = {
    index: 0,
    id: `call-${key}`,
    type: 'function',
    function: { name: 'file_read', arguments: JSON.stringify({ path: `${key}.txt`, note: ofPhp(key) }) },
  }
  return `${chunk({ delta: { tool_calls: [wanted] } })}${chunk({ delta: {}, finish_reason: 'tool_calls' })}data: [DONE]\n\n`
}

/** Returns the seed's minimum with every tool, and three remote providers: one that answers, one that refuses, one that is a web page. */
export function configurationFor(url: string): string {
  const remote = (name: string, path: string, key: string) =>
    `\n[providers.models.${name}]\nkind = "openai-compatible"\nbase_url = "${url}/${path}/v1"\nmodel = "m"\napi_key_env = "${key}"\n`
  const base = minimumConfig.replace(/tools_allow = .*\n/, '').replace(/\[providers.models.openai_compatible\][^[]*/, '')
  return `${base}${remote('far', 'ok', 'OPENAI_API_KEY')}${remote('refusing', 'refuse', 'OTHER_PASS')}${remote('html', 'html', 'GITHUB_TOKEN')}`
}
