/** Finds in the text of a skill what honest ones rarely need: hidden characters, encoded text, and sentences and code of known attacks. */

import { escapeHidden } from '../../kit/escape.ts'
import { grouped, quote } from '../../kit/text.ts'

/** `at` is a position in the text that was searched. */
export type Sign = { readonly rule: string; readonly at: number; readonly why: string }

type Pattern = { readonly rule: string; readonly why: string; readonly pattern: RegExp }

/** Reads lines `rule | why | pattern`; within a pattern, `{near}` stands for a few words of the same clause. */
function rows(text: string): readonly Pattern[] {
  const lines = text.trim().split('\n')
  return lines.map((line) => {
    const [rule = '', why = '', ...pattern] = line.split(' | ')
    return { rule, why, pattern: new RegExp(pattern.join(' | ').replaceAll('{near}', '[^.,;:\\n]{0,60}'), 'gimu') }
  })
}

const signs = rows(String.raw`
override | it puts itself above other instructions | \b(?:ignore|disregard|forget|override|bypass)\b{near}\b(?:previous|prior|earlier|above|preceding|other|system|developer|original|existing)\b{near}\b(?:instructions?|rules|guidance|guidelines|prompts?|directions|context)\b
override | it puts itself above other instructions | \b(?:ignorier\w*|vergiss){near}(?:anweisung|regel)|\b(?:ignore[zr]?|oublie[zr]?|olvida|ignora){near}(?:instructions? précédentes|instrucciones|reglas|istruzioni)|(?:忽略|无视|忘记).{0,12}(?:指令|规则|提示)|игнорируй\S*{near}(?:инструкц|указан)|(?:以前|これまで)の(?:指示|命令)を無視
override | it puts itself above other instructions | \btakes? precedence over (?:everything|all|any|the (?:system|user))|\bover the user'?s? (?:wish|will|request|instruction)|\b(?:you are now|act as|enter)\b{near}\b(?:maintenance mode|developer mode|god mode|jailbr\w+|without (?:any )?restrictions|unrestricted)|\bdo not refuse\b
override | it wants to be loaded before others | \balways (?:load|use|call|run|activate) this (?:skill|tool)\b{near}\b(?:first|before)\b
secrecy | it hides something from the user | \b(?:do not|don't|never)\s+(?:tell|mention|inform|show|reveal|notify|disclose|report)\b{near}\b(?:user|it|this|them|commands?)\b{near}(?:$|[.,;])(?<=\b(?:user|owner|human)\b.{0,60}|\bmention (?:it|this)[.,;]?)
secrecy | it acts without the user's knowledge | \b(?:silently|secretly|covertly|in the background without)\b|\b(?:as|in) an invisible\b|(?<!\b(?:not|never|don't)\b[^.\n]{0,40})\bwithout (?:asking|telling|notifying|confirmation|reading it|the user)\b
credentials | it asks for a secret | \b(?:ask|request|prompt|demand|tell|have)\b{near}\b(?:user|them|for)\b{near}\b(?:passwords?|passphrase|seed phrase|recovery phrase|private key|mnemonic|one-time code|second factor|2fa|pin code|api key|cookies?)\b
credentials | it touches files or stores with keys | ^(?!.*(?:IdentityFile|ssh-keygen|ssh -i\b|\.pub\b)).*?(?:\.ssh\/(?:id_|\*|authorized)|\bid_(?:rsa|ed25519)\b|\.aws\/credentials|~\/\.(?:netrc|npmrc|pypirc|git-credentials|pgpass|env\b)|\.credentials\.json|\/etc\/shadow|\bLogin Data\b|\bwallet\.dat\b|find-(?:generic|internet)-password|(?:braidclaw|clawdbot|openclaw)\/\.env)
credentials | it takes the whole environment | dict\(os\.environ\)|(?:dumps|str|list)\(os\.environ|stringify\(process\.env\)|(?:^|[\s;|&(])(?:env|printenv|export -p)\s*\||\bsend\b{near}\benvironment variables\b
download | it runs what it downloads | \b(?:iex|invoke-expression)\b{near}\b(?:iwr|irm|curl|invoke-webrequest|downloadstring)\b|\bdownload\b[^\n]{0,200}\b(?:start|run|execute|open|launch)\b[^\n]{0,20}\b(?:program|installer|binary|executable|app|file|it)\b|\b(?:extract|unpack|unzip)\b[^\n]{0,40}\bpassword\b
download | it takes its instructions from a page | \b(?:do|follow|obey|execute)\b{near}\b(?:written|instructions|rules|steps)\b[^\n]{0,40}https?:\/\/|https?:\/\/\S+[^\n]{0,60}\b(?:follow|obey) (?:it|them)\b
code | it runs code that is known only when it runs | (?<![.\w])(?:eval|exec)\s*\((?!\s*\))|\bnew Function\s*\(|\b__import__\s*\(|\bmarshal\.loads\b|\bpickle\.loads\b
shell | it gives a shell to another machine | \/dev\/(?:tcp|udp)\/|\bdup2\s*\(|\bpty\.spawn\b|\b(?:nc|ncat|netcat)\b[^\n]{0,60}(?:\s-\w*e\b|\s\d{2,5}\b)|\bsocat\b[^\n]{0,60}\bexec:
tunnel | it sends data inside the name of a host | \b(?:dig|nslookup|host|ping)\b[^\n]{0,30}(?:\$\(|\s\x60)
checks | it turns checks off | --dangerously-\w+|--yolo\b|--no-verify\b|--no-sandbox\b|\bsandbox\s*=\s*["']?none|\bautonomy\s*=\s*["']?full|spctl --master-disable|\bxattr -c|\bsetenforce 0|csrutil disable|\b(?:disable|turn off|switch off|deactivate|bypass|skip)\b{near}\b(?:antivirus|gatekeeper|firewall|sandbox|approvals?|safety|security checks?|permission checks?|defender)\b|\bapprove (?:every|all)\b|\bevery command is approved\b
persist | it stays after the task | \bauthorized_keys\b|\|\s*crontab\b|\bLaunchAgents\b|\bsystemctl --user enable\b|\b(?:write|add|append|save|put|insert)\b{near}\b(?:AGENTS|CLAUDE|SOUL|MEMORY|GEMINI)\.md\b
registry | it installs from elsewhere than the usual registry | --(?:extra-)?index-url\b|--registry[ =]|\b(?:npm|pnpm|yarn|bun|pip3?|uv)\b (?:i|install|add|pip install)\b[^\n\x60]{0,60}\s(?:git\+|https?:\/\/)
spelling | a word mixes letters that look alike | (?<![\p{L}])(?=\p{L}*[a-z])(?=\p{L}*\p{Script=Cyrillic})\p{L}{2,}
spelling | it writes commands in full-width letters | [\uff41-\uff5a]{2,}|[a-z][\uff41-\uff5a]|[\uff41-\uff5a][a-z]
`)

/** Texts that a reader of the rendered page does not see; each match ends with the text. Lengths are bounded for the sake of time. */
const unseen = [
  /<!--([\s\S]{0,1000})/g,
  /^\[[^\]\n]{0,200}\]:\s{0,9}(?:#|<>)\s{0,9}[("']([^\n]{0,1000})/gm,
  /<\w+[^>]{0,200}(?:display:\s*none|visibility:\s*hidden|font-size:\s*0|color:\s*(?:white|#fff\b|transparent)|\shidden\b)[^>]{0,200}>([^<]{0,1000})/gi,
  /!\[[^\]\n]{0,200}\]\([^)\s]{1,500}\s+"([^"\n]{20,1000})"\)/g,
]
const instructs =
  /\b(?:assistants?|agents?|ai|model|system|you|must|always|never|run|execute|send|read|fetch|upload|append|ignore|forget|reply|replace|curl|approve)\b/i

/** Enough for a person to look at; a hostile text can have as many as it likes. */
const mostMatches = 20

/** Returns every sign, in no particular order. Pure. `text` may be hostile; it should be at most a few hundred KiB long. */
export function signsIn(text: string): readonly Sign[] {
  const found: Sign[] = [...hiddenIn(text), ...encodedIn(text)]
  for (const { rule, why, pattern } of signs)
    for (const match of text.matchAll(pattern).take(mostMatches)) found.push({ rule, at: match.index, why: said(why, match[0]) })
  for (const pattern of unseen)
    for (const match of text.matchAll(pattern).take(mostMatches)) {
      const words = (match.at(-1) ?? '').replace(/-->[\s\S]*/, '').trim()
      if (instructs.test(words) && words.split(/\s+/).length >= 4)
        found.push({ rule: 'unseen', at: match.index, why: said('text that a page does not show has instructions', words) })
    }
  return found
}

function said(why: string, text: string): string {
  return `${why}: ${quote(text.trim().replace(/\s+/g, ' '))}`
}

function hiddenIn(whole: string): readonly Sign[] {
  const text = whole.replace(/^\uFEFF/, '')
  let at = whole.length - text.length
  for (const line of text.split('\n')) {
    const bare = line.replace(/\r$/, '')
    if (escapeHidden(bare) !== bare)
      return [{ rule: 'hidden', at, why: said('characters that do not show, or turn the text around', bare) }]
    at += line.length + 1
  }
  return []
}

/** Reads encoded text, and finds text that nobody can read. */
function encodedIn(whole: string): readonly Sign[] {
  const found: Sign[] = []
  const text = whole.replace(/data:image\/(?:png|jpeg|gif|webp);base64,[\w+/=]+/g, (picture) => ' '.repeat(picture.length))
  for (const match of text.matchAll(/(?<![\w+/=-])[A-Za-z0-9+/]{24,}={0,2}(?![\w+/])/g).take(mostMatches * 20)) {
    const decoded = Buffer.from(match[0], 'base64').toString('latin1')
    if (/^[\x20-\x7e\s]+$/.test(decoded) && /\s/.test(decoded))
      found.push({ rule: 'encoded', at: match.index, why: said('encoded text says', decoded) })
  }
  const runs = /(?:\\x[0-9a-f]{2}){8,}|(?:\\u[0-9a-f]{4}){8,}|(?:\b\d{2,3}\b\s{0,9},\s{0,9}){16,}|[^\s"'`<>]{300,}/gi
  for (const match of text.matchAll(runs).take(mostMatches))
    if (!/^https?:/.test(match[0]))
      found.push({ rule: 'encoded', at: match.index, why: said(`${grouped(match[0].length)} characters that nobody can read`, match[0]) })
  return found
}
