(globalThis.TURBOPACK||(globalThis.TURBOPACK=[])).push(["object"==typeof document?document.currentScript:void 0,65486,t=>{"use strict";var e=(0,t.i(419524).p)(()=>`
  /* Font Awesome icon styling - consolidated */
  .label-icon {
    display: inline-block;
    height: 1em;
    overflow: visible;
    vertical-align: -0.125em;
  }
  
  .node .label-icon path {
    fill: currentColor;
    stroke: revert;
    stroke-width: revert;
  }
`,"getIconStyles");t.s(["f",0,e])},58137,t=>{"use strict";var e=t.i(60231),i=t.i(419524),r=t.i(139941),n=t.i(419882),s=(0,i.p)((t,e)=>{let i=t.append("rect");if(i.attr("x",e.x),i.attr("y",e.y),i.attr("fill",e.fill),i.attr("stroke",e.stroke),i.attr("width",e.width),i.attr("height",e.height),e.name&&i.attr("name",e.name),e.rx&&i.attr("rx",e.rx),e.ry&&i.attr("ry",e.ry),void 0!==e.attrs)for(let t in e.attrs)i.attr(t,e.attrs[t]);return e.class&&i.attr("class",e.class),i},"drawRect"),a=(0,i.p)((t,e)=>{s(t,{x:e.startx,y:e.starty,width:e.stopx-e.startx,height:e.stopy-e.starty,fill:e.fill,stroke:e.stroke,class:"rect"}).lower()},"drawBackgroundRect"),l=(0,i.p)((t,i)=>{let r=i.text.replace(e.g," "),n=t.append("text");n.attr("x",i.x),n.attr("y",i.y),n.attr("class","legend"),n.style("text-anchor",i.anchor),i.class&&n.attr("class",i.class);let s=n.append("tspan");return s.attr("x",i.x+2*i.textMargin),s.text(r),n},"drawText"),o=(0,i.p)((t,e,i,n)=>{let s=t.append("image");s.attr("x",e),s.attr("y",i);let a=(0,r.sanitizeUrl)(n);s.attr("xlink:href",a)},"drawImage"),c=(0,i.p)((t,e,i,n)=>{let s=t.append("use");s.attr("x",e),s.attr("y",i);let a=(0,r.sanitizeUrl)(n);s.attr("xlink:href",`#${a}`)},"drawEmbeddedImage"),h=(0,i.p)(()=>({x:0,y:0,width:100,height:100,fill:"#EDF2AE",stroke:"#666",anchor:"start",rx:0,ry:0}),"getNoteRect"),p=(0,i.p)(()=>({x:0,y:0,width:100,height:100,"text-anchor":"start",style:"#666",textMargin:0,rx:0,ry:0,tspan:!0}),"getTextObj"),u=(0,i.p)(()=>{let t=(0,n.f)(".mermaidTooltip");return t.empty()&&(t=(0,n.f)("body").append("div").attr("class","mermaidTooltip").style("opacity",0).style("position","absolute").style("text-align","center").style("max-width","200px").style("padding","2px").style("font-size","12px").style("background","#ffffde").style("border","1px solid #333").style("border-radius","2px").style("pointer-events","none").style("z-index","100")),t},"createTooltip");t.s(["m",0,u,"Z",0,a,"N",0,c,"A",0,o,"J",0,s,"K",0,l,"f",0,h,"W",0,p])},547384,t=>{"use strict";var e=t.i(65486),i=t.i(58137),r=t.i(60231);t.i(508324);var n=t.i(419524),s=t.i(419882),a=t.i(787198),l=function(){var t=(0,n.p)(function(t,e,i,r){for(i=i||{},r=t.length;r--;i[t[r]]=e);return i},"o"),e=[6,8,10,11,12,14,16,17,18],i=[1,9],r=[1,10],s=[1,11],a=[1,12],l=[1,13],o=[1,14],c={trace:(0,n.p)(function(){},"trace"),yy:{},symbols_:{error:2,start:3,journey:4,document:5,EOF:6,line:7,SPACE:8,statement:9,NEWLINE:10,title:11,acc_title:12,acc_title_value:13,acc_descr:14,acc_descr_value:15,acc_descr_multiline_value:16,section:17,taskName:18,taskData:19,$accept:0,$end:1},terminals_:{2:"error",4:"journey",6:"EOF",8:"SPACE",10:"NEWLINE",11:"title",12:"acc_title",13:"acc_title_value",14:"acc_descr",15:"acc_descr_value",16:"acc_descr_multiline_value",17:"section",18:"taskName",19:"taskData"},productions_:[0,[3,3],[5,0],[5,2],[7,2],[7,1],[7,1],[7,1],[9,1],[9,2],[9,2],[9,1],[9,1],[9,2]],performAction:(0,n.p)(function(t,e,i,r,n,s,a){var l=s.length-1;switch(n){case 1:return s[l-1];case 2:case 6:case 7:this.$=[];break;case 3:s[l-1].push(s[l]),this.$=s[l-1];break;case 4:case 5:this.$=s[l];break;case 8:r.setDiagramTitle(s[l].substr(6)),this.$=s[l].substr(6);break;case 9:this.$=s[l].trim(),r.setAccTitle(this.$);break;case 10:case 11:this.$=s[l].trim(),r.setAccDescription(this.$);break;case 12:r.addSection(s[l].substr(8)),this.$=s[l].substr(8);break;case 13:r.addTask(s[l-1],s[l]),this.$="task"}},"anonymous"),table:[{3:1,4:[1,2]},{1:[3]},t(e,[2,2],{5:3}),{6:[1,4],7:5,8:[1,6],9:7,10:[1,8],11:i,12:r,14:s,16:a,17:l,18:o},t(e,[2,7],{1:[2,1]}),t(e,[2,3]),{9:15,11:i,12:r,14:s,16:a,17:l,18:o},t(e,[2,5]),t(e,[2,6]),t(e,[2,8]),{13:[1,16]},{15:[1,17]},t(e,[2,11]),t(e,[2,12]),{19:[1,18]},t(e,[2,4]),t(e,[2,9]),t(e,[2,10]),t(e,[2,13])],defaultActions:{},parseError:(0,n.p)(function(t,e){if(e.recoverable)this.trace(t);else{var i=Error(t);throw i.hash=e,i}},"parseError"),parse:(0,n.p)(function(t){var e=this,i=[0],r=[],s=[null],a=[],l=this.table,o="",c=0,h=0,p=0,u=a.slice.call(arguments,1),y=Object.create(this.lexer),d={};for(var f in this.yy)Object.prototype.hasOwnProperty.call(this.yy,f)&&(d[f]=this.yy[f]);y.setInput(t,d),d.lexer=y,d.parser=this,void 0===y.yylloc&&(y.yylloc={});var g=y.yylloc;a.push(g);var x=y.options&&y.options.ranges;function m(){var t;return"number"!=typeof(t=r.pop()||y.lex()||1)&&(t instanceof Array&&(t=(r=t).pop()),t=e.symbols_[t]||t),t}"function"==typeof d.parseError?this.parseError=d.parseError:this.parseError=Object.getPrototypeOf(this).parseError,(0,n.p)(function(t){i.length=i.length-2*t,s.length=s.length-t,a.length=a.length-t},"popStack"),(0,n.p)(m,"lex");for(var k,b,_,v,w,$,T,M,S,E={};;){if(_=i[i.length-1],this.defaultActions[_]?v=this.defaultActions[_]:(null==k&&(k=m()),v=l[_]&&l[_][k]),void 0===v||!v.length||!v[0]){var A="";for($ in S=[],l[_])this.terminals_[$]&&$>2&&S.push("'"+this.terminals_[$]+"'");A=y.showPosition?"Parse error on line "+(c+1)+":\n"+y.showPosition()+"\nExpecting "+S.join(", ")+", got '"+(this.terminals_[k]||k)+"'":"Parse error on line "+(c+1)+": Unexpected "+(1==k?"end of input":"'"+(this.terminals_[k]||k)+"'"),this.parseError(A,{text:y.match,token:this.terminals_[k]||k,line:y.yylineno,loc:g,expected:S})}if(v[0]instanceof Array&&v.length>1)throw Error("Parse Error: multiple actions possible at state: "+_+", token: "+k);switch(v[0]){case 1:i.push(k),s.push(y.yytext),a.push(y.yylloc),i.push(v[1]),k=null,b?(k=b,b=null):(h=y.yyleng,o=y.yytext,c=y.yylineno,g=y.yylloc,p>0&&p--);break;case 2:if(T=this.productions_[v[1]][1],E.$=s[s.length-T],E._$={first_line:a[a.length-(T||1)].first_line,last_line:a[a.length-1].last_line,first_column:a[a.length-(T||1)].first_column,last_column:a[a.length-1].last_column},x&&(E._$.range=[a[a.length-(T||1)].range[0],a[a.length-1].range[1]]),void 0!==(w=this.performAction.apply(E,[o,h,c,d,v[1],s,a].concat(u))))return w;T&&(i=i.slice(0,-1*T*2),s=s.slice(0,-1*T),a=a.slice(0,-1*T)),i.push(this.productions_[v[1]][0]),s.push(E.$),a.push(E._$),M=l[i[i.length-2]][i[i.length-1]],i.push(M);break;case 3:return!0}}return!0},"parse")};function h(){this.yy={}}return c.lexer={EOF:1,parseError:(0,n.p)(function(t,e){if(this.yy.parser)this.yy.parser.parseError(t,e);else throw Error(t)},"parseError"),setInput:(0,n.p)(function(t,e){return this.yy=e||this.yy||{},this._input=t,this._more=this._backtrack=this.done=!1,this.yylineno=this.yyleng=0,this.yytext=this.matched=this.match="",this.conditionStack=["INITIAL"],this.yylloc={first_line:1,first_column:0,last_line:1,last_column:0},this.options.ranges&&(this.yylloc.range=[0,0]),this.offset=0,this},"setInput"),input:(0,n.p)(function(){var t=this._input[0];return this.yytext+=t,this.yyleng++,this.offset++,this.match+=t,this.matched+=t,t.match(/(?:\r\n?|\n).*/g)?(this.yylineno++,this.yylloc.last_line++):this.yylloc.last_column++,this.options.ranges&&this.yylloc.range[1]++,this._input=this._input.slice(1),t},"input"),unput:(0,n.p)(function(t){var e=t.length,i=t.split(/(?:\r\n?|\n)/g);this._input=t+this._input,this.yytext=this.yytext.substr(0,this.yytext.length-e),this.offset-=e;var r=this.match.split(/(?:\r\n?|\n)/g);this.match=this.match.substr(0,this.match.length-1),this.matched=this.matched.substr(0,this.matched.length-1),i.length-1&&(this.yylineno-=i.length-1);var n=this.yylloc.range;return this.yylloc={first_line:this.yylloc.first_line,last_line:this.yylineno+1,first_column:this.yylloc.first_column,last_column:i?(i.length===r.length?this.yylloc.first_column:0)+r[r.length-i.length].length-i[0].length:this.yylloc.first_column-e},this.options.ranges&&(this.yylloc.range=[n[0],n[0]+this.yyleng-e]),this.yyleng=this.yytext.length,this},"unput"),more:(0,n.p)(function(){return this._more=!0,this},"more"),reject:(0,n.p)(function(){return this.options.backtrack_lexer?(this._backtrack=!0,this):this.parseError("Lexical error on line "+(this.yylineno+1)+". You can only invoke reject() in the lexer when the lexer is of the backtracking persuasion (options.backtrack_lexer = true).\n"+this.showPosition(),{text:"",token:null,line:this.yylineno})},"reject"),less:(0,n.p)(function(t){this.unput(this.match.slice(t))},"less"),pastInput:(0,n.p)(function(){var t=this.matched.substr(0,this.matched.length-this.match.length);return(t.length>20?"...":"")+t.substr(-20).replace(/\n/g,"")},"pastInput"),upcomingInput:(0,n.p)(function(){var t=this.match;return t.length<20&&(t+=this._input.substr(0,20-t.length)),(t.substr(0,20)+(t.length>20?"...":"")).replace(/\n/g,"")},"upcomingInput"),showPosition:(0,n.p)(function(){var t=this.pastInput(),e=Array(t.length+1).join("-");return t+this.upcomingInput()+"\n"+e+"^"},"showPosition"),test_match:(0,n.p)(function(t,e){var i,r,n;if(this.options.backtrack_lexer&&(n={yylineno:this.yylineno,yylloc:{first_line:this.yylloc.first_line,last_line:this.last_line,first_column:this.yylloc.first_column,last_column:this.yylloc.last_column},yytext:this.yytext,match:this.match,matches:this.matches,matched:this.matched,yyleng:this.yyleng,offset:this.offset,_more:this._more,_input:this._input,yy:this.yy,conditionStack:this.conditionStack.slice(0),done:this.done},this.options.ranges&&(n.yylloc.range=this.yylloc.range.slice(0))),(r=t[0].match(/(?:\r\n?|\n).*/g))&&(this.yylineno+=r.length),this.yylloc={first_line:this.yylloc.last_line,last_line:this.yylineno+1,first_column:this.yylloc.last_column,last_column:r?r[r.length-1].length-r[r.length-1].match(/\r?\n?/)[0].length:this.yylloc.last_column+t[0].length},this.yytext+=t[0],this.match+=t[0],this.matches=t,this.yyleng=this.yytext.length,this.options.ranges&&(this.yylloc.range=[this.offset,this.offset+=this.yyleng]),this._more=!1,this._backtrack=!1,this._input=this._input.slice(t[0].length),this.matched+=t[0],i=this.performAction.call(this,this.yy,this,e,this.conditionStack[this.conditionStack.length-1]),this.done&&this._input&&(this.done=!1),i)return i;if(this._backtrack)for(var s in n)this[s]=n[s];return!1},"test_match"),next:(0,n.p)(function(){if(this.done)return this.EOF;this._input||(this.done=!0),this._more||(this.yytext="",this.match="");for(var t,e,i,r,n=this._currentRules(),s=0;s<n.length;s++)if((i=this._input.match(this.rules[n[s]]))&&(!e||i[0].length>e[0].length)){if(e=i,r=s,this.options.backtrack_lexer){if(!1!==(t=this.test_match(i,n[s])))return t;if(!this._backtrack)return!1;e=!1;continue}if(!this.options.flex)break}return e?!1!==(t=this.test_match(e,n[r]))&&t:""===this._input?this.EOF:this.parseError("Lexical error on line "+(this.yylineno+1)+". Unrecognized text.\n"+this.showPosition(),{text:"",token:null,line:this.yylineno})},"next"),lex:(0,n.p)(function(){var t=this.next();return t||this.lex()},"lex"),begin:(0,n.p)(function(t){this.conditionStack.push(t)},"begin"),popState:(0,n.p)(function(){return this.conditionStack.length-1>0?this.conditionStack.pop():this.conditionStack[0]},"popState"),_currentRules:(0,n.p)(function(){return this.conditionStack.length&&this.conditionStack[this.conditionStack.length-1]?this.conditions[this.conditionStack[this.conditionStack.length-1]].rules:this.conditions.INITIAL.rules},"_currentRules"),topState:(0,n.p)(function(t){return(t=this.conditionStack.length-1-Math.abs(t||0))>=0?this.conditionStack[t]:"INITIAL"},"topState"),pushState:(0,n.p)(function(t){this.begin(t)},"pushState"),stateStackSize:(0,n.p)(function(){return this.conditionStack.length},"stateStackSize"),options:{"case-insensitive":!0},performAction:(0,n.p)(function(t,e,i,r){switch(i){case 0:case 1:case 3:case 4:break;case 2:return 10;case 5:return 4;case 6:return 11;case 7:return this.begin("acc_title"),12;case 8:return this.popState(),"acc_title_value";case 9:return this.begin("acc_descr"),14;case 10:return this.popState(),"acc_descr_value";case 11:this.begin("acc_descr_multiline");break;case 12:this.popState();break;case 13:return"acc_descr_multiline_value";case 14:return 17;case 15:return 18;case 16:return 19;case 17:return":";case 18:return 6;case 19:return"INVALID"}},"anonymous"),rules:[/^(?:%(?!\{)[^\n]*)/i,/^(?:[^\}]%%[^\n]*)/i,/^(?:[\n]+)/i,/^(?:\s+)/i,/^(?:#[^\n]*)/i,/^(?:journey\b)/i,/^(?:title\s[^#\n;]+)/i,/^(?:accTitle\s*:\s*)/i,/^(?:(?!\n||)*[^\n]*)/i,/^(?:accDescr\s*:\s*)/i,/^(?:(?!\n||)*[^\n]*)/i,/^(?:accDescr\s*\{\s*)/i,/^(?:[\}])/i,/^(?:[^\}]*)/i,/^(?:section\s[^#:\n;]+)/i,/^(?:[^#:\n;]+)/i,/^(?::[^#\n;]+)/i,/^(?::)/i,/^(?:$)/i,/^(?:.)/i],conditions:{acc_descr_multiline:{rules:[12,13],inclusive:!1},acc_descr:{rules:[10],inclusive:!1},acc_title:{rules:[8],inclusive:!1},INITIAL:{rules:[0,1,2,3,4,5,6,7,9,11,14,15,16,17,18,19],inclusive:!0}}},(0,n.p)(h,"Parser"),h.prototype=c,c.Parser=h,new h}();l.parser=l;var o="",c=[],h=[],p=[],u=(0,n.p)(function(){c.length=0,h.length=0,o="",p.length=0,(0,r.M)()},"clear"),y=(0,n.p)(function(t){o=t,c.push(t)},"addSection"),d=(0,n.p)(function(){return c},"getSections"),f=(0,n.p)(function(){let t=k(),e=0;for(;!t&&e<100;)t=k(),e++;return h.push(...p),h},"getTasks"),g=(0,n.p)(function(){let t=[];return h.forEach(e=>{e.people&&t.push(...e.people)}),[...new Set(t)].sort()},"updateActors"),x=(0,n.p)(function(t,e){let i=e.substr(1).split(":"),r=0,n=[];1===i.length?(r=Number(i[0]),n=[]):(r=Number(i[0]),n=i[1].split(","));let s=n.map(t=>t.trim()),a={section:o,type:o,people:s,task:t,score:r};p.push(a)},"addTask"),m=(0,n.p)(function(t){let e={section:o,type:o,description:t,task:t,classes:[]};h.push(e)},"addTaskOrg"),k=(0,n.p)(function(){let t=(0,n.p)(function(t){return p[t].processed},"compileTask"),e=!0;for(let[i,r]of p.entries())t(i),e=e&&r.processed;return e},"compileTasks"),b=(0,n.p)(function(){return g()},"getActors"),_={getConfig:(0,n.p)(()=>(0,r.z)().journey,"getConfig"),clear:u,setDiagramTitle:r.a,getDiagramTitle:r.F,setAccTitle:r.b,getAccTitle:r.d,setAccDescription:r.C,getAccDescription:r.j,addSection:y,getSections:d,getTasks:f,addTask:x,addTaskOrg:m,getActors:b},v=(0,n.p)(t=>`.label {
    font-family: ${t.fontFamily};
    color: ${t.textColor};
  }
  .mouth {
    stroke: #666;
  }

  line {
    stroke: ${t.textColor}
  }

  .legend {
    fill: ${t.textColor};
    font-family: ${t.fontFamily};
  }

  .label text {
    fill: #333;
  }
  .label {
    color: ${t.textColor}
  }

  .face {
    ${t.faceColor?`fill: ${t.faceColor}`:"fill: #FFF8DC"};
    stroke: #999;
  }

  .node rect,
  .node circle,
  .node ellipse,
  .node polygon,
  .node path {
    fill: ${t.mainBkg};
    stroke: ${t.nodeBorder};
    stroke-width: 1px;
  }

  .node .label {
    text-align: center;
  }
  .node.clickable {
    cursor: pointer;
  }

  .arrowheadPath {
    fill: ${t.arrowheadColor};
  }

  .edgePaths .path {
    stroke: ${t.lineColor};
    stroke-width: 1.5px;
  }

  .flowchart-link {
    stroke: ${t.lineColor};
    fill: none;
  }

  .edgeLabel {
    background-color: ${t.edgeLabelBackground};
    rect {
      opacity: 0.5;
    }
    text-align: center;
  }

  .cluster rect {
  }

  .cluster text {
    fill: ${t.titleColor};
  }

  div.mermaidTooltip {
    position: absolute;
    text-align: center;
    max-width: 200px;
    padding: 2px;
    font-family: ${t.fontFamily};
    font-size: 12px;
    background: ${t.tertiaryColor};
    border: 1px solid ${t.border2};
    border-radius: 2px;
    pointer-events: none;
    z-index: 100;
  }

  .task-type-0, .section-type-0  {
    ${t.fillType0?`fill: ${t.fillType0}`:""};
  }
  .task-type-1, .section-type-1  {
    ${t.fillType0?`fill: ${t.fillType1}`:""};
  }
  .task-type-2, .section-type-2  {
    ${t.fillType0?`fill: ${t.fillType2}`:""};
  }
  .task-type-3, .section-type-3  {
    ${t.fillType0?`fill: ${t.fillType3}`:""};
  }
  .task-type-4, .section-type-4  {
    ${t.fillType0?`fill: ${t.fillType4}`:""};
  }
  .task-type-5, .section-type-5  {
    ${t.fillType0?`fill: ${t.fillType5}`:""};
  }
  .task-type-6, .section-type-6  {
    ${t.fillType0?`fill: ${t.fillType6}`:""};
  }
  .task-type-7, .section-type-7  {
    ${t.fillType0?`fill: ${t.fillType7}`:""};
  }

  .actor-0 {
    ${t.actor0?`fill: ${t.actor0}`:""};
  }
  .actor-1 {
    ${t.actor1?`fill: ${t.actor1}`:""};
  }
  .actor-2 {
    ${t.actor2?`fill: ${t.actor2}`:""};
  }
  .actor-3 {
    ${t.actor3?`fill: ${t.actor3}`:""};
  }
  .actor-4 {
    ${t.actor4?`fill: ${t.actor4}`:""};
  }
  .actor-5 {
    ${t.actor5?`fill: ${t.actor5}`:""};
  }
  ${(0,e.f)()}
`,"getStyles"),w=(0,n.p)(function(t,e){return(0,i.J)(t,e)},"drawRect"),$=(0,n.p)(function(t,e){let i=t.append("circle").attr("cx",e.cx).attr("cy",e.cy).attr("class","face").attr("r",15).attr("stroke-width",2).attr("overflow","visible"),r=t.append("g");function s(t){let i=(0,a.y)().startAngle(Math.PI/2).endAngle(Math.PI/2*3).innerRadius(7.5).outerRadius(15/2.2);t.append("path").attr("class","mouth").attr("d",i).attr("transform","translate("+e.cx+","+(e.cy+2)+")")}function l(t){let i=(0,a.y)().startAngle(3*Math.PI/2).endAngle(Math.PI/2*5).innerRadius(7.5).outerRadius(15/2.2);t.append("path").attr("class","mouth").attr("d",i).attr("transform","translate("+e.cx+","+(e.cy+7)+")")}function o(t){t.append("line").attr("class","mouth").attr("stroke",2).attr("x1",e.cx-5).attr("y1",e.cy+7).attr("x2",e.cx+5).attr("y2",e.cy+7).attr("class","mouth").attr("stroke-width","1px").attr("stroke","#666")}return r.append("circle").attr("cx",e.cx-5).attr("cy",e.cy-5).attr("r",1.5).attr("stroke-width",2).attr("fill","#666").attr("stroke","#666"),r.append("circle").attr("cx",e.cx+5).attr("cy",e.cy-5).attr("r",1.5).attr("stroke-width",2).attr("fill","#666").attr("stroke","#666"),(0,n.p)(s,"smile"),(0,n.p)(l,"sad"),(0,n.p)(o,"ambivalent"),e.score>3?s(r):e.score<3?l(r):o(r),i},"drawFace"),T=(0,n.p)(function(t,e){let i=t.append("circle");return i.attr("cx",e.cx),i.attr("cy",e.cy),i.attr("class","actor-"+e.pos),i.attr("fill",e.fill),i.attr("stroke",e.stroke),i.attr("r",e.r),void 0!==i.class&&i.attr("class",i.class),void 0!==e.title&&i.append("title").text(e.title),i},"drawCircle"),M=(0,n.p)(function(t,e){return(0,i.K)(t,e)},"drawText"),S=(0,n.p)(function(t,e,r){let n=t.append("g"),s=(0,i.f)();s.x=e.x,s.y=e.y,s.fill=e.fill,s.width=r.width*e.taskCount+r.diagramMarginX*(e.taskCount-1),s.height=r.height,s.class="journey-section section-type-"+e.num,s.rx=3,s.ry=3,w(n,s),C(r)(e.text,n,s.x,s.y,s.width,s.height,{class:"journey-section section-type-"+e.num},r,e.colour)},"drawSection"),E=-1,A=(0,n.p)(function(t,e,r,n){let s=e.x+r.width/2,a=t.append("g");E++,a.append("line").attr("id",n+"-task"+E).attr("x1",s).attr("y1",e.y).attr("x2",s).attr("y2",450).attr("class","task-line").attr("stroke-width","1px").attr("stroke-dasharray","4 2").attr("stroke","#666"),$(a,{cx:s,cy:300+(5-e.score)*30,score:e.score});let l=(0,i.f)();l.x=e.x,l.y=e.y,l.fill=e.fill,l.width=r.width,l.height=r.height,l.class="task task-type-"+e.num,l.rx=3,l.ry=3,w(a,l);let o=e.x+14;e.people.forEach(t=>{let i=e.actors[t].color;T(a,{cx:o,cy:e.y,r:7,fill:i,stroke:"#000",title:t,pos:e.actors[t].position}),o+=10}),C(r)(e.task,a,l.x,l.y,l.width,l.height,{class:"task"},r,e.colour)},"drawTask"),C=function(){function t(t,e,i,n,s,a,l,o){r(e.append("text").attr("x",i+s/2).attr("y",n+a/2+5).style("font-color",o).style("text-anchor","middle").text(t),l)}function e(t,e,i,n,s,a,l,o,c){let{taskFontSize:h,taskFontFamily:p}=o,u=t.split(/<br\s*\/?>/gi);for(let t=0;t<u.length;t++){let o=t*h-h*(u.length-1)/2,y=e.append("text").attr("x",i+s/2).attr("y",n).attr("fill",c).style("text-anchor","middle").style("font-size",h).style("font-family",p);y.append("tspan").attr("x",i+s/2).attr("dy",o).text(u[t]),y.attr("y",n+a/2).attr("dominant-baseline","central").attr("alignment-baseline","central"),r(y,l)}}function i(t,i,n,s,a,l,o,c){let h=i.append("switch"),p=h.append("foreignObject").attr("x",n).attr("y",s).attr("width",a).attr("height",l).attr("position","fixed").append("xhtml:div").style("display","table").style("height","100%").style("width","100%");p.append("div").attr("class","label").style("display","table-cell").style("text-align","center").style("vertical-align","middle").text(t),e(t,h,n,s,a,l,o,c),r(p,o)}function r(t,e){for(let i in e)i in e&&t.attr(i,e[i])}return(0,n.p)(t,"byText"),(0,n.p)(e,"byTspan"),(0,n.p)(i,"byFo"),(0,n.p)(r,"_setTextAttrs"),function(r){return"fo"===r.textPlacement?i:"old"===r.textPlacement?t:e}}(),I=(0,n.p)(function(t,e){E=-1,t.append("defs").append("marker").attr("id",e+"-arrowhead").attr("refX",5).attr("refY",2).attr("markerWidth",6).attr("markerHeight",4).attr("orient","auto").append("path").attr("d","M 0,0 V 4 L6,2 Z")},"initGraphics"),P=(0,n.p)(function(t){Object.keys(t).forEach(function(e){B[e]=t[e]})},"setConf"),j={},F=0;function V(t){let e=(0,r.z)().journey,i=e.maxLabelWidth;F=0;let n=60;Object.keys(j).forEach(r=>{let s=j[r].color;T(t,{cx:20,cy:n,r:7,fill:s,stroke:"#000",pos:j[r].position});let a=t.append("text").attr("visibility","hidden").text(r),l=a.node().getBoundingClientRect().width;a.remove();let o=[];if(l<=i)o=[r];else{let e=r.split(" "),n="";a=t.append("text").attr("visibility","hidden"),e.forEach(t=>{let e=n?`${n} ${t}`:t;if(a.text(e),a.node().getBoundingClientRect().width>i){if(n&&o.push(n),n=t,a.text(t),a.node().getBoundingClientRect().width>i){let e="";for(let r of t)e+=r,a.text(e+"-"),a.node().getBoundingClientRect().width>i&&(o.push(e.slice(0,-1)+"-"),e=r);n=e}}else n=e}),n&&o.push(n),a.remove()}o.forEach((i,r)=>{let s=M(t,{x:40,y:n+7+20*r,fill:"#666",text:i,textMargin:e.boxTextMargin??5}).node().getBoundingClientRect().width;s>F&&s>e.leftMargin-s&&(F=s)}),n+=Math.max(20,20*o.length)})}(0,n.p)(V,"drawActorLegend");var B=(0,r.z)().journey,R=0,z=(0,n.p)(function(t,e,i,n){let a,l=(0,r.z)(),o=l.journey.titleColor,c=l.journey.titleFontSize,h=l.journey.titleFontFamily,p=l.securityLevel;"sandbox"===p&&(a=(0,s.f)("#i"+e));let u="sandbox"===p?(0,s.f)(a.nodes()[0].contentDocument.body):(0,s.f)("body");O.init();let y=u.select("#"+e);I(y,e);let d=n.db.getTasks(),f=n.db.getDiagramTitle(),g=n.db.getActors();for(let t in j)delete j[t];let x=0;g.forEach(t=>{j[t]={color:B.actorColours[x%B.actorColours.length],position:x},x++}),V(y),R=B.leftMargin+F,O.insert(0,0,R,50*Object.keys(j).length),N(y,d,0,e);let m=O.getBounds();f&&y.append("text").text(f).attr("x",R).attr("font-size",c).attr("font-weight","bold").attr("y",25).attr("fill",o).attr("font-family",h);let k=m.stopy-m.starty+2*B.diagramMarginY,b=R+m.stopx+2*B.diagramMarginX;(0,r.m)(y,k,b,B.useMaxWidth),y.append("line").attr("x1",R).attr("y1",4*B.height).attr("x2",b-R-4).attr("y2",4*B.height).attr("stroke-width",4).attr("stroke","black").attr("marker-end","url(#"+e+"-arrowhead)");let _=70*!!f;y.attr("viewBox",`${m.startx} -25 ${b} ${k+_}`),y.attr("preserveAspectRatio","xMinYMin meet"),y.attr("height",k+_+25)},"draw"),O={data:{startx:void 0,stopx:void 0,starty:void 0,stopy:void 0},verticalPos:0,sequenceItems:[],init:(0,n.p)(function(){this.sequenceItems=[],this.data={startx:void 0,stopx:void 0,starty:void 0,stopy:void 0},this.verticalPos=0},"init"),updateVal:(0,n.p)(function(t,e,i,r){void 0===t[e]?t[e]=i:t[e]=r(i,t[e])},"updateVal"),updateBounds:(0,n.p)(function(t,e,i,s){let a=(0,r.z)().journey,l=this,o=0;function c(r){return(0,n.p)(function(n){o++;let c=l.sequenceItems.length-o+1;l.updateVal(n,"starty",e-c*a.boxMargin,Math.min),l.updateVal(n,"stopy",s+c*a.boxMargin,Math.max),l.updateVal(O.data,"startx",t-c*a.boxMargin,Math.min),l.updateVal(O.data,"stopx",i+c*a.boxMargin,Math.max),"activation"!==r&&(l.updateVal(n,"startx",t-c*a.boxMargin,Math.min),l.updateVal(n,"stopx",i+c*a.boxMargin,Math.max),l.updateVal(O.data,"starty",e-c*a.boxMargin,Math.min),l.updateVal(O.data,"stopy",s+c*a.boxMargin,Math.max))},"updateItemBounds")}(0,n.p)(c,"updateFn"),this.sequenceItems.forEach(c())},"updateBounds"),insert:(0,n.p)(function(t,e,i,r){let n=Math.min(t,i),s=Math.max(t,i),a=Math.min(e,r),l=Math.max(e,r);this.updateVal(O.data,"startx",n,Math.min),this.updateVal(O.data,"starty",a,Math.min),this.updateVal(O.data,"stopx",s,Math.max),this.updateVal(O.data,"stopy",l,Math.max),this.updateBounds(n,a,s,l)},"insert"),bumpVerticalPos:(0,n.p)(function(t){this.verticalPos=this.verticalPos+t,this.data.stopy=this.verticalPos},"bumpVerticalPos"),getVerticalPos:(0,n.p)(function(){return this.verticalPos},"getVerticalPos"),getBounds:(0,n.p)(function(){return this.data},"getBounds")},D=B.sectionFills,L=B.sectionColours,N=(0,n.p)(function(t,e,i,n){let s=(0,r.z)().journey,a="",l=i+(2*s.height+s.diagramMarginY),o=0,c="#CCC",h="black",p=0;for(let[i,r]of e.entries()){if(a!==r.section){c=D[o%D.length],p=o%D.length,h=L[o%L.length];let n=0,l=r.section;for(let t=i;t<e.length;t++)if(e[t].section==l)n+=1;else break;S(t,{x:i*s.taskMargin+i*s.width+R,y:50,text:r.section,fill:c,num:p,colour:h,taskCount:n},s),a=r.section,o++}let u=r.people.reduce((t,e)=>(j[e]&&(t[e]=j[e]),t),{});r.x=i*s.taskMargin+i*s.width+R,r.y=l,r.width=s.diagramMarginX,r.height=s.diagramMarginY,r.colour=h,r.fill=c,r.num=p,r.actors=u,A(t,r,s,n),O.insert(r.x,r.y,r.x+r.width+s.taskMargin,450)}},"drawTasks"),U={setConf:P,draw:z},W={parser:l,db:_,renderer:U,styles:v,init:(0,n.p)(t=>{U.setConf(t.journey),_.clear()},"init")};t.s(["diagram",0,W])}]);