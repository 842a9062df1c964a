# Definitions that jaq lacks, or that differ from jq's.

def delpath_($p):
  if ($p | length) == 0 then null
  elif . == null then .
  elif ($p | length) == 1 then
    $p[0] as $k
    | if type == "object" then with_entries(select(.key != $k)) else .[$k] |= empty end
  elif type == "object" and (has($p[0]) | not) then .
  else .[$p[0]] |= delpath_($p[1:])
  end;
def delpaths($paths): reduce ($paths | sort | reverse | .[]) as $p (.; delpath_($p));
def del(f): delpaths([path(f)]);

def setpath_($p; $x):
  if ($p | length) == 0 then $x
  else $p[0] as $k
  | if ($k | type) == "number"
    then (. // []) | (. + [range($k + 1 - length) | null]) | .[$k] |= setpath_($p[1:]; $x)
    else (. // {}) as $o | $o + {($k): ($o[$k] | setpath_($p[1:]; $x))}
    end
  end;
def setpath($p; $x): setpath_($p; $x);
def pick(f): . as $top | reduce path(f) as $p (null; setpath_($p; $top | getpath($p)));

def row_(quote; name):
  if type != "array" then error("cannot be " + name + "-formatted, only an array can be") else . end
  | .[] |= (if type == "string" then quote
    elif . == null then ""
    elif type == "array" or type == "object" then error(type + " is not valid in a " + name + " row")
    else tostring end);
def @tsv:
  row_(gsub("\\\\"; "\\\\") | gsub("\t"; "\\t") | gsub("\n"; "\\n") | gsub("\r"; "\\r"); "tsv")
  | join("\t");
def @csv: row_("\"" + gsub("\""; "\"\"") + "\""; "csv") | join(",");

def env: $ENV;
def inputs: empty;
def input: error("No more inputs");
def input_filename: null;
