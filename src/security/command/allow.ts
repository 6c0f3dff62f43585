/** Lists the commands of medium risk that need no configuration. Every start loads this list, so it is apart from the other lists. */

/** Developer tools that mostly read; tools/ defines what each may do beyond reading. */
export const defaultAllow: readonly string[] = (
  'ls cat tac rev nl head tail wc grep egrep fgrep rg fd find sort uniq comm join paste cut tr fold fmt expand unexpand column shuf ' +
  'sed awk gawk mawk diff cmp file stat du df pwd echo printf date cal git tree jq basename dirname realpath readlink which ' +
  'expr test [ true false mkdir touch cp mv tee seq sleep nproc uname whoami id arch uptime md5sum sha1sum sha224sum sha256sum sha384sum ' +
  'sha512sum b2sum cksum sum base64 base32 xxd od hexdump strings zcat tar npm bun make'
).split(' ')
